# SPDX-License-Identifier: Apache-2.0
"""Texts: TensorFlow's documented examples."""
import numpy as np
import pytest

import plimsoll.tf as tf
from plimsoll.tf import errors
from test_array import same, traced


def test_length():
    same(tf.strings.length(["Hello", "TensorFlow", "\U0001F642"]), [5, 10, 4], tf.int32)
    same(tf.strings.length(["Hello", "\U0001F642"], unit="UTF8_CHAR"), [5, 1], tf.int32)
    with pytest.raises(ValueError):
        tf.strings.length("a", unit="WORD")


def test_join():
    same(tf.strings.join(["abc", "def"]), b"abcdef")
    same(tf.strings.join([["abc", "123"], ["def", "456"]]), [b"abcdef", b"123456"])
    same(tf.strings.join(["a", ["b", "c"]], separator="-"), [b"a-b", b"a-c"])


def test_split():
    same(tf.strings.split("hello  world"), [b"hello", b"world"], tf.string)
    same(tf.strings.split("a,b,,c", sep=","), [b"a", b"b", b"", b"c"])
    same(tf.strings.split("a b c", maxsplit=1), [b"a", b"b c"])
    with pytest.raises(NotImplementedError, match="Ragged"):
        tf.strings.split(["a b", "c"])
    run = traced(lambda x: tf.strings.split(x, "/"), (tf.string, []))
    assert run("a/b").tolist() == [b"a", b"b"]
    same(tf.strings.split("some/path/7_cat.jpg", "/")[-1], b"7_cat.jpg")


def test_bytes_split_and_strip():
    same(tf.strings.bytes_split("abc"), [b"a", b"b", b"c"])
    same(tf.strings.strip(["\nTensorFlow", "     The python library    "]),
         [b"TensorFlow", b"The python library"])


def test_substr():
    same(tf.strings.substr([b"Hello", b"World"], 1, 3), [b"ell", b"orl"])
    same(tf.strings.substr(["abc"], -2, 5), [b"bc"])
    same(tf.strings.substr(["ten", "eleven"], [0, 2], [1, 3]), [b"t", b"eve"])
    same(tf.strings.substr("\u00e4\u00f6\u00fc", 1, 1, unit="UTF8_CHAR"), "\u00f6".encode())
    with pytest.raises(errors.InvalidArgumentError):
        tf.strings.substr("abc", 10, 1)


def test_numbers():
    same(tf.strings.to_number(["1.55", "2"]), [1.55, 2.0], tf.float32)
    same(tf.strings.to_number("3", tf.int64), 3, tf.int64)
    with pytest.raises(errors.InvalidArgumentError):
        tf.strings.to_number("abc")
    same(tf.strings.as_string([3, 2]), [b"3", b"2"])
    same(tf.strings.as_string(3.1415926, precision=2), b"3.14")
    same(tf.strings.as_string(1.5), b"1.500000")
    same(tf.strings.as_string([True, False]), [b"true", b"false"])
    same(tf.strings.as_string(7, width=3, fill="0"), b"007")
    with pytest.raises(errors.InvalidArgumentError):
        tf.strings.as_string(1, precision=0)
    same(tf.strings.as_string(1500.0, scientific=True, precision=1), b"1.5e+03")


def test_letters():
    same(tf.strings.lower("CamelCase string and ALL CAPS"), b"camelcase string and all caps")
    same(tf.strings.upper(["aB"]), [b"AB"])
    same(tf.strings.lower("\u00c4", encoding="utf-8"), "\u00e4".encode())
    same(tf.strings.lower("\u00c4"), "\u00c4".encode())


def test_patterns():
    same(tf.strings.regex_full_match(["TF lib", "lib TF"], ".*lib$"), [True, False], tf.bool)
    same(tf.strings.regex_full_match("abc", "b"), False)
    same(tf.strings.regex_replace("Text with tags.<br /><b>contains html</b>", "<[^>]+>", " "),
         b"Text with tags.  contains html ")
    same(tf.strings.regex_replace("ab ab", "(a)(b)", r"\2\1"), b"ba ba")
    same(tf.strings.regex_replace("aa", "a", r"[\0]", replace_global=False), b"[a]a")
    with pytest.raises(errors.InvalidArgumentError):
        tf.strings.regex_full_match("a", "(")


def test_reduce_join():
    x = [["abc", "123"], ["def", "456"]]
    same(tf.strings.reduce_join(x), b"abc123def456")
    same(tf.strings.reduce_join(x, axis=-1), [b"abc123", b"def456"])
    same(tf.strings.reduce_join(x, axis=-1, separator=" ", keepdims=True), [[b"abc 123"], [b"def 456"]])
    same(tf.strings.reduce_join(x, axis=0), [b"abcdef", b"123456"])


def test_format():
    same(tf.strings.format("tensor: {}, suffix", tf.range(10)), b"tensor: [0 1 2 ... 7 8 9], suffix")
    same(tf.strings.format("{} and {}", (tf.constant(1.5), tf.constant("a"))), b'1.5 and "a"')
    with pytest.raises(ValueError):
        tf.strings.format("{} {}", tf.constant(1))


def test_traced_texts():
    run = traced(lambda x: tf.strings.lower(x) + "!", (tf.string, [None]))
    assert run(["A", "B"]).tolist() == [b"a!", b"b!"]


# ---- characters ----


def test_characters_as_numbers_and_back():
    text = "G\u00f6\u00f6dnight \U0001f60a"
    for codec in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        data = text.encode(codec)
        numbers, starts = tf.strings.unicode_decode_with_offsets(data, codec)
        same(numbers, [ord(c) for c in text], tf.int32)
        same(starts, [len(text[:i].encode(codec)) for i in range(len(text))], tf.int64)
        same(tf.strings.unicode_encode(numbers, codec), data, tf.string)
        same(tf.strings.unicode_split(data, codec), [c.encode(codec) for c in text], tf.string)
        same(tf.strings.unicode_transcode([data], codec, "UTF-8"), [text.encode()], tf.string)
    same(tf.strings.unicode_encode([[72, 105], [0xD800, 33]], "UTF-8"),
         [b"Hi", "\ufffd!".encode()])


def test_bytes_that_are_no_text():
    bad = b"a\xffb\x01"
    same(tf.strings.unicode_decode(bad, "UTF-8"), [97, 65533, 98, 1])
    same(tf.strings.unicode_decode(bad, "UTF-8", replacement_char=63), [97, 63, 98, 1])
    same(tf.strings.unicode_decode(bad, "UTF-8", "ignore"), [97, 98, 1])
    same(tf.strings.unicode_decode(bad, "UTF-8", replace_control_characters=True),
         [97, 65533, 98, 65533])
    with pytest.raises(errors.InvalidArgumentError):
        tf.strings.unicode_decode(bad, "UTF-8", "strict")
    with pytest.raises(errors.InvalidArgumentError):
        tf.strings.unicode_encode([0xD800], "UTF-8", "strict")
    with pytest.raises(ValueError):
        tf.strings.unicode_decode("a", "UTF-9")
    with pytest.raises(NotImplementedError, match="unicode_split"):
        tf.strings.unicode_split(["a", "b"], "UTF-8")


def test_ngrams():
    row = ["aa", "bb", "cc"]
    same(tf.strings.ngrams(row, 2), [b"aa bb", b"bb cc"], tf.string)
    same(tf.strings.ngrams(row, (1, 2), "-"), [b"aa", b"bb", b"cc", b"aa-bb", b"bb-cc"])
    same(tf.strings.ngrams(row, 2, "|", ("L", "R")), [b"L|aa", b"aa|bb", b"bb|cc", b"cc|R"])
    same(tf.strings.ngrams(row, 3, "|", "P", 1),
         [b"P|aa|bb", b"aa|bb|cc", b"bb|cc|P"])
    assert tf.strings.ngrams(row, 5).shape.as_list() == [0]
    same(tf.strings.ngrams(row, 5, preserve_short_sequences=True), [b"aa bb cc"])
    same(tf.strings.ngrams([row, row[::-1]], 3), [[b"aa bb cc"], [b"cc bb aa"]])
    run = traced(lambda x: tf.strings.ngrams(x, 2), (tf.string, [None]))
    assert run(np.array(row, object)).tolist() == [b"aa bb", b"bb cc"]


def test_segments_are_joined():
    same(tf.strings.unsorted_segment_join(["this", "a", "test", "is"], [0, 1, 1, 0], 3, ":"),
         [b"this:is", b"a:test", b""])
    same(tf.strings.unsorted_segment_join([["a", "b"], ["c", "d"]], [0, 0], 1), [[b"ac", b"bd"]])
    same(tf.strings.unsorted_segment_join(["a", "b"], [-1, 0], 1), [b"b"])
    with pytest.raises(errors.InvalidArgumentError):
        tf.strings.unsorted_segment_join(["a"], [5], 2)
