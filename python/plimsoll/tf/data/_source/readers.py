# SPDX-License-Identifier: Apache-2.0
"""Datasets of the contents of files: records, lines, CSV."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from plimsoll import _core
from plimsoll.tf._values.types import DType, as_dtype, string

from plimsoll.tf.data._dataset import Dataset
from plimsoll.tf.data._source.sources import _texts
from plimsoll.tf.data._stage.stages import AUTOTUNE, number

def _compression(value: Any, unsaid: str = "AUTO") -> str:
    """As _core names it; `unsaid`: the default."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
    if text not in ("", "GZIP", "ZLIB"):
        raise ValueError(f"the compression_type is '', 'GZIP' or 'ZLIB', this is {value!r}")
    return text or unsaid


def _paths(filenames: Any) -> _core.Dataset:
    """Names of files, or a dataset of them."""
    if isinstance(filenames, Dataset):
        specs = filenames._core.specs
        if len(specs) != 1 or specs[0][0] != string:
            raise TypeError(
                "The `filenames` argument must contain `tf.string` elements. Got a dataset of "
                f"`{filenames.element_spec}` elements."
            )
        if specs[0][1] not in ((), None):
            return filenames.unbatch()._core
        return filenames._core
    return _core.ds_paths(_texts(filenames))


def _read(
    filenames: Any, read: Callable[[_core.Dataset], _core.Dataset], num_parallel_reads: Any
) -> _core.Dataset:
    """One file after the other, or several in turn."""
    paths = _paths(filenames)
    if num_parallel_reads is None:
        return read(paths)
    n_reads = number(num_parallel_reads, "num_parallel_reads")
    if n_reads != AUTOTUNE and n_reads < 1:
        raise ValueError(f"`num_parallel_reads` must be positive, it is {n_reads}")
    specs = read(_core.ds_paths([])).specs
    opened = _core.Callback(
        lambda path: [read(_core.ds_tensors([path]))], [(None, None, specs)]
    )
    return _core.ds_interleave(paths, opened, n_reads, 1, n_reads)


class TFRecordDataset(Dataset):
    """The records of TFRecord files, whose checksums are always looked at.

    >>> with tf.io.TFRecordWriter("two.tfrecord") as file:
    ...     file.write(b"one")
    ...     file.write(b"two")
    >>> list(tf.data.TFRecordDataset("two.tfrecord").as_numpy_iterator())
    [b'one', b'two']
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Optional[str] = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: Optional[str] = None,
    ) -> None:
        packed = _compression(compression_type)
        core = _read(
            filenames, lambda paths: _core.ds_records(paths, packed), num_parallel_reads
        )
        _begin(self, core, "TFRecord", filenames, name)


class TextLineDataset(Dataset):
    """The lines of text files, without their ends.

    >>> import pathlib
    >>> _ = pathlib.Path("lines.txt").write_text("to be\\nor not to be\\n")
    >>> list(tf.data.TextLineDataset("lines.txt").as_numpy_iterator())
    [b'to be', b'or not to be']
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Optional[str] = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: Optional[str] = None,
    ) -> None:
        packed = _compression(compression_type)
        core = _read(filenames, lambda paths: _core.ds_lines(paths, packed), num_parallel_reads)
        _begin(self, core, "TextLine", filenames, name)


class FixedLengthRecordDataset(Dataset):
    """Records of one size, between a header and a footer, which are skipped.

    >>> import pathlib
    >>> _ = pathlib.Path("fixed.bin").write_bytes(b"headaabbcc")
    >>> ds = tf.data.FixedLengthRecordDataset("fixed.bin", record_bytes=2, header_bytes=4)
    >>> list(ds.as_numpy_iterator())
    [b'aa', b'bb', b'cc']
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Optional[str] = None,
        num_parallel_reads: Any = None,
        name: Optional[str] = None,
    ) -> None:
        packed = _compression(compression_type, "NONE")
        record = number(record_bytes, "record_bytes")
        head = 0 if header_bytes is None else number(header_bytes, "header_bytes")
        foot = 0 if footer_bytes is None else number(footer_bytes, "footer_bytes")
        core = _read(
            filenames,
            lambda paths: _core.ds_fixed(paths, head, record, foot, packed),
            num_parallel_reads,
        )
        _begin(self, core, "FixedLengthRecord", filenames, name)


class CsvDataset(Dataset):
    """The records of CSV files: a tuple with a tensor for each column.

    A dtype in `record_defaults` is a column that must not be empty, a value stands for empty fields.

    >>> import pathlib
    >>> _ = pathlib.Path("plane.csv").write_text("x,y\\n1,2.5\\n3,\\n")
    >>> ds = tf.data.experimental.CsvDataset("plane.csv", [tf.int32, 0.0], header=True)
    >>> list(ds.as_numpy_iterator())
    [(1, 2.5), (3, 0.0)]
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence,
        compression_type: Optional[str] = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Optional[Sequence[int]] = None,
        exclude_cols: Optional[Sequence[int]] = None,
    ) -> None:
        columns = [_column(default) for default in record_defaults]
        selected = _selected(select_cols, exclude_cols, len(columns))
        core = _core.ds_csv(
            _paths(filenames),
            columns,
            selected,
            field_delim,
            not use_quote_delim,
            bool(header),
            na_value,
            _compression(compression_type),
        )
        _begin(self, core, "Csv", filenames, None, ("tuple", [None] * len(columns)))


def _column(default: Any) -> tuple:
    """(dtype, required, default)."""
    if isinstance(default, (DType, type)):
        return (as_dtype(default), True, None)
    value = _core.convert(default)
    if value.ndim and value.shape.num_elements() == 0:  # an empty vector: required as well
        return (value.dtype, True, None)
    scalar = value.numpy()
    if value.ndim:
        scalar = scalar.ravel()[0]
    return (value.dtype, False, scalar if isinstance(scalar, bytes) else scalar.item())


def _selected(
    select_cols: Optional[Sequence[int]], exclude_cols: Optional[Sequence[int]], n_columns: int
) -> Optional[list[int]]:
    if select_cols is not None and exclude_cols is not None:
        raise ValueError("`select_cols` and `exclude_cols` cannot both be given")
    if exclude_cols is not None:
        n_fields = n_columns + len(set(exclude_cols))
        return [place for place in range(n_fields) if place not in set(exclude_cols)]
    return None if select_cols is None else [int(place) for place in select_cols]


def _begin(
    dataset: Dataset,
    core: _core.Dataset,
    kind: str,
    filenames: Any,
    name: Optional[str],
    tree: Any = None,
) -> None:
    if name is not None:
        core.name = name
    sources = (filenames,) if isinstance(filenames, Dataset) else ()
    Dataset.__init__(dataset, core, tree, kind, sources)
