# SPDX-License-Identifier: Apache-2.0
"""tf.data.experimental.make_csv_dataset(): CSV files as batches of named columns.

Names are those of the header, dtypes what the first rows of the files can be: int32, int64, float32,
float64 or string, the first that all of them fit. An empty field is 0 or an empty string.
"""
from __future__ import annotations

import csv
import glob
import gzip
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

from plimsoll import _core
from plimsoll.tf._values.types import DType, float32, float64, int32, int64, string

from plimsoll.tf.data._dataset import Dataset
from plimsoll.tf.data._source.readers import CsvDataset
from plimsoll.tf.data._source.sources import _texts
from plimsoll.tf.data._stage.stages import AUTOTUNE

_KINDS = (int32, int64, float32, float64, string)


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Optional[Sequence[str]] = None,
    column_defaults: Optional[Sequence] = None,
    label_name: Optional[str] = None,
    select_columns: Optional[Sequence[Union[int, str]]] = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: Optional[int] = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: Optional[int] = None,
    prefetch_buffer_size: Optional[int] = None,
    num_parallel_reads: Optional[int] = None,
    sloppy: bool = False,
    num_rows_for_inference: Optional[int] = 100,
    compression_type: Optional[str] = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Batches of the files' columns, by name; with a `label_name` pairs of the others and that one.

    Without `num_epochs` it has no end.

    >>> import pathlib
    >>> _ = pathlib.Path("fish.csv").write_text("length,name\\n1.5,cod\\n2,eel\\n")
    >>> ds = tf.data.experimental.make_csv_dataset(
    ...     "fish.csv", batch_size=2, label_name="name", num_epochs=1, shuffle=False)
    >>> features, label = next(iter(ds))
    >>> features["length"].numpy().tolist(), label.numpy().tolist()
    ([1.5, 2.0], [b'cod', b'eel'])
    """
    files = _files(file_pattern)
    look = _Look(files, field_delim, use_quote_delim, na_value, header, encoding)
    names = list(column_names) if column_names is not None else look.names()
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    places = _places(select_columns, names)
    defaults: Sequence = column_defaults or ()
    if column_defaults is None:
        defaults = look.defaults(places, len(names), num_rows_for_inference)
    elif len(defaults) != len(places):
        raise ValueError(
            "If specified, `column_defaults` and `select_columns` must have same length: "
            f"`column_defaults` has length {len(defaults)}, `select_columns` has length "
            f"{len(places)}."
        )
    chosen = [names[place] for place in places]
    if label_name is not None and label_name not in chosen:
        raise ValueError("`label_name` provided must be one of the columns.")

    def opened(path: Any) -> Dataset:
        return CsvDataset(
            path,
            defaults,
            compression_type,
            header=header,
            field_delim=field_delim,
            use_quote_delim=use_quote_delim,
            na_value=na_value,
            select_cols=places,
        )

    dataset = Dataset.from_tensor_slices(files)
    if shuffle:
        dataset = dataset.shuffle(len(files), shuffle_seed)
    dataset = dataset.interleave(
        opened,
        cycle_length=num_parallel_reads or 1,
        num_parallel_calls=num_parallel_reads,
        deterministic=not sloppy,
    )
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)
    ahead = AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size
    return dataset.map(lambda *columns: _named(chosen, columns, label_name)).prefetch(ahead)


def _named(names: list[str], columns: Sequence, label_name: Optional[str]) -> Any:
    features = dict(zip(names, columns))
    if label_name is None:
        return features
    label = features.pop(label_name)
    return features, label


def _files(file_pattern: Any) -> list[str]:
    patterns = _texts(file_pattern)
    files = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    if not files:
        raise ValueError(f"No files match `file_pattern` {', '.join(patterns)}.")
    return files


def _places(select_columns: Optional[Sequence], names: list[str]) -> list[int]:
    if select_columns is None:
        return list(range(len(names)))
    places = []
    for column in select_columns:
        if isinstance(column, str) and column not in names:
            raise ValueError(f"`select_columns` has '{column}', the columns are {names}.")
        place = names.index(column) if isinstance(column, str) else int(column)
        if not 0 <= place < len(names):
            raise ValueError(f"`select_columns` has {place}, there are {len(names)} columns.")
        places.append(place)
    return sorted(places)


class _Look:
    """A look at the files' first rows."""

    def __init__(
        self, files: list[str], delimiter: str, quotes: bool, na_value: str, header: bool, encoding: str
    ) -> None:
        self._files, self._header, self._encoding = files, header, encoding
        self._dialect: dict[str, Any] = {"delimiter": delimiter}
        self._dialect["quoting"] = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
        self._empty = ("", na_value)

    def _rows(self, path: str) -> Iterator[list[str]]:
        with open(path, "rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        opened = gzip.open if is_packed else open
        with opened(path, "rt", encoding=self._encoding, newline="") as text:  # type: ignore
            yield from csv.reader(text, **self._dialect)

    def names(self) -> list[str]:
        """The header, which all files must have alike."""
        if not self._header:
            raise ValueError("Cannot infer column names without a header line.")
        first: list[str] = next(self._rows(self._files[0]), [])
        for path in self._files[1:]:
            if next(self._rows(path), []) != first:
                raise ValueError(
                    f"All input CSV files should have the same column names in the header row. "
                    f"File {path} has different column names."
                )
        return first

    def defaults(self, places: list[int], n_columns: int, n_rows: Optional[int]) -> list:
        """A value for empty fields of each column, of the dtype that its fields have."""
        kinds: list[Optional[int]] = [None] * len(places)
        every = itertools.chain.from_iterable(map(self._records, self._files))
        for row in itertools.islice(every, n_rows):
            if len(row) != n_columns:
                raise ValueError(
                    f"Problem inferring types: CSV row {row} has {len(row)} number of fields. "
                    f"Expected: {n_columns}."
                )
            for number, place in enumerate(places):
                kinds[number] = self._widened(row[place], kinds[number])
        return [_default(string if kind is None else _KINDS[kind]) for kind in kinds]

    def _records(self, path: str) -> Iterator[list[str]]:
        return itertools.islice(self._rows(path), 1 if self._header else 0, None)

    def _widened(self, field: str, kind: Optional[int]) -> Optional[int]:
        if field in self._empty:
            return kind
        first = next(number for number, dtype in enumerate(_KINDS) if _is(field, dtype))
        return first if kind is None else max(first, kind)


def _is(field: str, dtype: DType) -> bool:
    if dtype is string:
        return True
    try:
        value = int(field) if dtype.is_integer else float(field)
    except ValueError:
        return False
    return dtype.min <= value <= dtype.max


def _default(dtype: DType) -> Any:
    return _core.constant("" if dtype is string else 0, dtype, [1])
