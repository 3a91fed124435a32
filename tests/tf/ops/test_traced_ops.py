# SPDX-License-Identifier: Apache-2.0
"""What NumPy or Python does gives the same when it is traced, and run with what is then known."""
import os
import zlib

import numpy as np
import pytest

import plimsoll.tf as tf
from test_array import traced

TEXT, TEXTS = (tf.string, []), (tf.string, [None])
FLOAT, FLOATS, INTS = (tf.float32, []), (tf.float32, [None]), (tf.int32, [None])
PICTURE = (tf.uint8, [None, None, 3])
PIXELS = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
LINE = np.float32([1, 3, 2])

CASES = {
    "bytes_split": (tf.strings.bytes_split, TEXT, b"abc"),
    "split": (lambda x: tf.strings.split(x, maxsplit=1), TEXT, b"a b c"),
    "split into nothing": (lambda x: tf.strings.split(x, maxsplit=1), TEXT, b""),
    "substr": (lambda x: tf.strings.substr(x, 1, 2), TEXTS, [b"abc", b"de"]),
    "lower": (tf.strings.lower, TEXT, b"ABC"),
    "regex_replace": (lambda x: tf.strings.regex_replace(x, "b", "z"), TEXTS, [b"abc"]),
    "regex_full_match": (lambda x: tf.strings.regex_full_match(x, "a.*"), TEXT, b"abc"),
    "format": (lambda x: tf.strings.format("{}", x), TEXT, b"abc"),
    "reduce_join": (tf.strings.reduce_join, TEXTS, [b"a", b"b"]),
    "as_string": (tf.strings.as_string, FLOAT, np.float32(1.5)),
    "length": (lambda x: tf.strings.length(x, unit="UTF8_CHAR"), TEXT, "ä".encode()),
    "to_number": (tf.strings.to_number, TEXT, b"1.5"),
    "base64": (lambda x: tf.io.decode_base64(tf.io.encode_base64(x)), TEXT, b"abc"),
    "decode_compressed": (lambda x: tf.io.decode_compressed(x, "ZLIB"), TEXT, zlib.compress(b"q")),
    "serialize_tensor": (lambda x: tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32), FLOATS,
                         LINE),
    "encode_png": (lambda x: tf.io.decode_png(tf.io.encode_png(x)), PICTURE, PIXELS),
    "matching_files": (tf.io.matching_files, TEXT, b"/dev/nul[l]"),
    "no matching_files": (tf.io.matching_files, TEXT, b"/dev/none*"),
    "decode_csv": (lambda x: tf.io.decode_csv(x, [[0], [""]])[1], TEXT, b"1,b"),
    "decode_raw": (lambda x: tf.io.decode_raw(x, tf.int16, little_endian=False), TEXT, b"abcd"),
    "unique": (lambda x: tf.unique(x).y, TEXTS, [b"b", b"a", b"b"]),
    "unique's places": (lambda x: tf.unique(x).idx, INTS, np.int32([5, 4, 5])),
    "pad": (lambda x: tf.pad(x, [[0, 1]]), TEXTS, [b"a"]),
    "a part of unknown rank": (lambda x: x[0], (tf.string, None), [b"a"]),
    "size": (tf.size, TEXTS, [b"a"]), "shape": (tf.shape, (tf.string, None), [b"a"]),
    "rank": (tf.rank, (tf.float32, None), LINE), "range": (tf.range, (tf.int32, []), np.int32(4)),
    "inv": (tf.linalg.inv, (tf.float32, [2, 2]), 2 * np.eye(2, dtype=np.float32)),
    "histogram": (lambda x: tf.histogram_fixed_width(x, [0.0, 5.0], 2), FLOATS, LINE),
    "scatter_nd": (lambda x: tf.scatter_nd([[0], [1], [0]], x, [2]), (tf.float32, [3]), LINE),
    "in_top_k": (lambda x: tf.math.in_top_k([0], x[None], 1), (tf.float32, [3]), LINE),
    "sequence_mask": (tf.sequence_mask, INTS, np.int32([1, 3])),
    "lgamma": (tf.math.lgamma, FLOATS, LINE), "cumprod": (tf.math.cumprod, FLOATS, LINE),
    "bincount": (tf.math.bincount, INTS, np.int32([1, 3])),
    "segment_sum": (lambda x: tf.math.segment_sum(x, [0, 0, 1]), FLOATS, LINE),
    "repeat": (lambda x: tf.repeat(x, [1, 2, 0]), FLOATS, LINE),
    "searchsorted": (lambda x: tf.searchsorted([1.0, 2.0, 3.0], x), FLOATS, LINE),
    "boolean_mask": (lambda x: tf.boolean_mask(x, x > 1.0), FLOATS, LINE),
    "bitcast": (lambda x: tf.bitcast(x, tf.int32), FLOATS, LINE),
    "resize": (lambda x: tf.image.resize(x, [3, 3], "area"), PICTURE, PIXELS),
    "resize in proportion": (lambda x: tf.image.resize(x, [2, 9], preserve_aspect_ratio=True), PICTURE,
                             PIXELS),
    "resize_with_pad": (lambda x: tf.image.resize_with_pad(x, 5, 5), PICTURE, PIXELS),
    "pad_to_bounding_box": (lambda x: tf.image.pad_to_bounding_box(x, 1, 1, 9, 9), PICTURE, PIXELS),
    "adjust_hue": (lambda x: tf.image.adjust_hue(x, 0.2), PICTURE, PIXELS),
}


@pytest.mark.parametrize("name", CASES)
def test_traced_is_as_eager(name):
    function, spec, value = CASES[name]
    eager = function(tf.constant(value, spec[0]))
    run = traced(function, spec)
    assert run.output.dtype == eager.dtype
    assert run.output.shape.is_compatible_with(eager.shape)
    found, expected = np.asarray(run(value)), np.asarray(eager.numpy())
    assert found.shape == expected.shape and found.tolist() == expected.tolist()


def test_files_are_written_in_the_run(tmp_path):
    path = str(tmp_path / "f")
    run = traced(lambda x: tf.io.write_file(path, x), TEXT)
    assert not os.path.exists(path)
    run("abc")
    assert open(path).read() == "abc"
