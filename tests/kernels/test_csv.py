# SPDX-License-Identifier: Apache-2.0
"""CSV is read as Python's csv module reads what it wrote, and as TensorFlow's CsvDataset has it where
that says more: what is malformed is refused, with its place, and costs its record only."""

import csv
import gzip
import io
import math
import random
import struct

import numpy as np
import pytest

from text_files import CODES, Bad, Item, Reader, column, number


@pytest.fixture(scope="session")
def text_tool(build_tool):
    return build_tool("text_tool")


@pytest.fixture
def reader(text_tool, tmp_path):
    return Reader(text_tool, tmp_path)


def written(rows, **how):
    out = io.StringIO(newline="")
    csv.writer(out, **how).writerows(rows)
    return out.getvalue().encode()


def values_of(found):
    assert all(isinstance(item, Item) for item in found), found
    return [item.values for item in found]


def split_slowly(data, delimiter=b",", quotes=True):
    """A byte at a time, as the rules are written: records of (offset, line, fields or None)."""
    records, at, line = [], 0, 1
    while at < len(data):
        start, first_line, fields, bad = at, line, [], False
        while True:  # a field
            field = b""
            if quotes and data[at : at + 1] == b'"':
                at += 1
                while at < len(data):
                    if data[at : at + 1] == b'"':
                        if data[at + 1 : at + 2] != b'"':
                            break
                        at += 1
                    field += data[at : at + 1]
                    at += 1
                if at >= len(data):  # not closed: goes on behind the record's first line
                    bad, at = True, start
                else:
                    at += 1
                    follows = data[at : at + 1]
                    bad = follows not in (delimiter, b"\n", b"\r", b"")
            while bad and at < len(data) and data[at : at + 1] not in (b"\n", b"\r"):
                at += 1
            while not bad and at < len(data) and data[at : at + 1] not in (delimiter, b"\n", b"\r"):
                if quotes and data[at : at + 1] == b'"':
                    bad = True
                    while at < len(data) and data[at : at + 1] not in (b"\n", b"\r"):
                        at += 1
                    break
                field += data[at : at + 1]
                at += 1
            fields.append(field)
            if bad or at >= len(data) or data[at : at + 1] != delimiter:
                break
            at += 1
        at += 2 if data[at : at + 2] == b"\r\n" else at < len(data)
        line += lines_in(data[start:at])
        records.append((start, first_line, None if bad else fields))
    return records


def lines_in(data):
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")


def as_records(found):
    return [(item.a, item.b, None if isinstance(item, Bad) else item.values) for item in found]


# ---- fields ----


@pytest.mark.parametrize("how", [{}, {"delimiter": ";"}, {"delimiter": "\t"},
                                 {"quoting": csv.QUOTE_ALL},
                                 {"quoting": csv.QUOTE_ALL, "lineterminator": "\n"},
                                 {"quoting": csv.QUOTE_ALL, "lineterminator": "\r"}], ids=str)
def test_what_python_wrote_is_read_again_in_windows_of_any_size(reader, how):
    chance = random.Random(3)
    rows = [["".join(chance.choices('ab,;\t"\r\n ', k=chance.randrange(9))) for _ in range(4)]
            for _ in range(60)]
    data, wanted = written(rows, **how), [[field.encode() for field in row] for row in rows]
    for window in (1, 5, 64, 100, 0):
        found = reader.fields(data, window, delimiter=how.get("delimiter", ","))
        assert values_of(found) == wanted, window
        assert [item.a for item in found][:1] == [0]


def test_random_bytes_are_split_as_the_rules_say(reader):
    chance = random.Random(4)
    commands, wanted = [], []
    for i in range(400):
        data = bytes(chance.choices(b'a,"\n\r;', [4, 3, 3 * (i % 2), 2, 1, 1],
                                    k=chance.randrange(150)))
        for _ in range(i % 3):  # fields longer than what is looked at in one step
            at = chance.randrange(len(data) + 1)
            data = data[:at] + b"x" * chance.randrange(200) + data[at:]
        path = reader.folder / f"csv{i}"
        path.write_bytes(data)
        quotes, delimiter = i % 5 > 0, b";" if i % 7 == 0 else b","
        for window in (chance.randrange(1, 30), chance.randrange(60, 80), 0):
            commands.append(["fields", window, 0, "-" if quotes else "q", ord(delimiter), path])
            wanted.append((data, split_slowly(data, delimiter, quotes)))
    n_bad = 0
    for command, (data, records), found in zip(commands, wanted, reader.run_many(commands)):
        assert as_records(found) == records, (command, data)
        n_bad += any(fields is None for _, _, fields in records)
    assert 100 < n_bad < 900


def test_a_file_cut_off_at_any_byte_is_split_as_far_as_it_goes(reader):
    data = b'id,"a ""name"""\r\n1,"two\r\nlines"\r\n2,\r\n3,"x"'
    path = reader.write(data)
    commands = [["fields", 3, 0, "-", 44, f"{path}@{n}"] for n in range(len(data) + 1)]
    for n, found in enumerate(reader.run_many(commands)):
        assert as_records(found) == split_slowly(data[:n]), data[:n]


def test_without_quotes_a_quote_is_a_byte(reader):
    found = reader.fields(b'"a,b"\n"",x"y\n', flags="q")
    assert values_of(found) == [[b'"a', b'b"'], [b'""', b'x"y']]


def test_a_mark_of_utf8_is_passed_over_at_the_beginning_only(reader):
    mark = b"\xef\xbb\xbf"
    for window in (1, 2, 0):
        found = reader.fields(mark + b'"a",b\n' + mark + b"c\n", window)
        assert values_of(found) == [[b"a", b"b"], [mark + b"c"]]
    assert reader.fields(mark) == []
    assert values_of(reader.fields(mark[:2])) == [[mark[:2]]]


def test_what_is_wrong_with_quotes_is_told_with_line_byte_and_column(reader):
    data = b'a,b\n1,x"y\n"p""q\n",2\n"r"s,3\nok,4\n5,"open\nend\n'
    found = reader.fields(data)
    assert [item.values for item in found if isinstance(item, Item)] == [
        [b"a", b"b"], [b'p"q\n', b"2"], [b"ok", b"4"], [b"end"]]
    quote, behind, unclosed = [item for item in found if isinstance(item, Bad)]
    assert quote.code == behind.code == unclosed.code == CODES["format"]
    assert "line 2, byte 7, column 2" in quote.message
    assert "line 5, byte 22, column 1" in behind.message and "twice" in behind.message
    assert "line 7, byte 34, column 2" in unclosed.message and "end of the file" in unclosed.message


def test_a_record_past_the_limit_costs_its_first_line(reader):
    data = b'1,2\n"' + b"x" * 90 + b'\n3,4\n' + b"y" * 200 + b"\n5,6\r\n7,8\n"
    for window in (1, 32, 0):
        found = reader.csv(data, ["s", "i"], window=window, limit=100)
        bad = [item for item in found if isinstance(item, Bad)]
        assert [item.code for item in bad] == [CODES["too long"]] * 2, found
        assert "line 2, byte 4:" in bad[0].message and "100 B" in bad[0].message
        assert "line 4, byte 100:" in bad[1].message
        good = [item.values[0] for item in found if isinstance(item, Item)]
        assert good == [b"1", b"3", b"5", b"7"]


def test_a_packed_file_is_read_as_if_it_were_not(reader):
    rows = [[str(i), f'text "{i}"', str(i / 7)] for i in range(20000)]
    packed = gzip.compress(written(rows))
    found = reader.csv(packed, ["i", "s", "d"])
    assert [number("d", item.values[2]) for item in found] == [float(row[2]) for row in rows]
    *good, bad = reader.csv(packed[:-20], ["i", "s", "d"])
    assert 15000 < len(good) < 20000 and bad.code == CODES["corrupt"]


def test_a_line_end_between_two_windows_ends_a_record_that_is_too_long(reader):
    path = reader.write(b"1\n" + b"y" * 301 + b"\r5\n6\n")
    windows = range(101, 160)
    commands = [reader.csv_words(path, ["s"], window=window, limit=100) for window in windows]
    for window, found in zip(windows, reader.run_many(commands)):
        good = [item.values for item in found if isinstance(item, Item)]
        assert good == [[b"1"], [b"5"], [b"6"]] and len(found) == 4, window


# ---- values ----


def test_each_column_has_its_dtype(reader):
    (item,) = reader.csv(b'-7, 9223372036854775807 ,"1.5",-2.5e-3,"a ""b"""', list("ilfds"))
    values = [number(kind, bits) for kind, bits in zip("ilfd", item.values)]
    assert values == [-7, 2**63 - 1, 1.5, -2.5e-3] and item.values[4] == b'a "b"'


def test_an_empty_field_has_the_default_and_so_has_the_na_value(reader):
    columns = [column("i", -1), column("l", -2), column("f", 0.5), column("d", 0.25),
               column("s", "none")]
    found = reader.csv(b',,,,\nNA,NA,"NA",NA,"NA"\n1,2,3,4,n\n"","","","",""', columns, na="NA")
    defaults = [-1, -2, 0.5, 0.25, b"none"]
    for item, wanted in zip(found, [defaults, defaults, [1, 2, 3.0, 4.0, b"n"], defaults]):
        values = [number(kind, bits) for kind, bits in zip("ilfd", item.values)]
        assert values + [item.values[4]] == wanted
    (item,) = reader.csv(b'"a""b"', [column("s", "x")], na='a"b')
    assert item.values == [b"x"]
    (item,) = reader.csv(b'"a""c"', [column("s", "x")], na='a"b')
    assert item.values == [b'a"c']


def test_an_empty_field_without_a_default_is_told_with_its_place(reader):
    good, bad, also = reader.csv(b"1,a\n2,\n,b\n", ["i", "s"])
    assert good.values[1] == b"a"
    assert "line 2, byte 6, column 2: nothing is there" in bad.message
    assert "line 3, byte 7, column 1" in also.message and also.code == CODES["format"]


@pytest.mark.parametrize("kind, text, what", [
    ("i", "2147483648", "does not fit int32"), ("i", "-2147483649", "does not fit int32"),
    ("l", "9223372036854775808", "does not fit int64"), ("l", "1.0", "is no int64"),
    ("l", "9" * 30, "does not fit int64"), ("i", "12a", "is no int32"), ("i", "-", "is no int32"),
    ("i", "+-1", "is no int32"), ("i", " ", "is no int32"), ("f", "1e39", "does not fit float32"),
    ("f", "3.4028236e38", "does not fit float32"), ("d", "1e309", "does not fit float64"),
    ("d", "-1e400", "does not fit float64"), ("d", "0x10", "is no float64"),
    ("d", "1,5".replace(",", ";"), "is no float64"), ("d", "1e", "is no float64"),
    ("d", ".", "is no float64"), ("d", "e5", "is no float64"), ("d", "nan(1)", "is no float64"),
    ("d", "1 2", "is no float64"), ("d", "1" * 600, "is no float64"), ("d", "infin", "is no float64"),
    ("f", "\x01\xff", "'???' is no float32"), ("d", "1.0.0", "is no float64"),
])  # fmt: skip
def test_what_is_no_such_number_is_told_with_the_text(reader, kind, text, what):
    bad, good = reader.csv(f"x,{text}\ny,1\n".encode(), ["s", kind])
    assert bad.code == CODES["format"] and what in bad.message
    assert "line 1, byte 2, column 2" in bad.message
    assert number(kind, good.values[1]) == 1


def test_too_few_and_too_many_fields_are_told_with_both_counts(reader):
    found = reader.csv(b"a,b\na\na,b,c\n\na,b\n", ["s", "s"])
    few, many, none = [item for item in found if isinstance(item, Bad)]
    assert "line 2, byte 4: 1 field, where 2 are expected" in few.message
    assert "line 3, byte 6: 3 fields, where 2 are expected" in many.message
    assert "line 4, byte 12: an empty line: 1 field, where 2" in none.message
    assert len(found) == 5


def test_selected_fields_are_read_and_the_others_may_be_anything(reader):
    data = b"1,x,2,bad\n3,,4\n5\n6,7,8\n"
    found = reader.csv(data, ["i", "i"], selected=[0, 2])
    assert [item.values for item in found if isinstance(item, Item)] == [[1, 2], [3, 4], [6, 8]]
    (bad,) = [item for item in found if isinstance(item, Bad)]
    assert "line 3, byte 15: 1 field, where at least 3 are expected" in bad.message
    (item,) = reader.csv(b"1,2,3", ["i"], selected=[1])
    assert item.values == [2]
    said = reader.csv(b"", ["i", "i"], selected=[1, 1])
    assert said.startswith("refused -22") and "ascend" in said
    (bad,) = reader.csv(b'"a\nb",1,x', ["i"], selected=[2])
    assert "line 2, byte 8, column 3" in bad.message


def test_a_header_is_passed_over_and_empty_lines_are_if_that_is_asked(reader):
    data = b'\xef\xbb\xbf"na\nme",b\n\n1,2\n\r\n\n3,4\n\n'
    for window in (1, 4, 0):
        found = reader.csv(data, ["i", "i"], window=window, flags="he")
        assert values_of(found) == [[1, 2], [3, 4]]
        assert [(item.a, item.b) for item in found] == [(data.index(b"1,2"), 4), (data.index(b"3,4"), 7)]
    assert len(reader.csv(data, ["i", "i"], flags="h")) == 6
    assert reader.csv(b"a,b", ["i", "i"], flags="h") == []
    found = reader.csv(b'a"b\n1\n', ["i"], flags="h")
    assert isinstance(found[0], Bad) and found[1].values == [1]


def test_an_empty_line_is_an_empty_field_of_a_single_column(reader):
    found = reader.csv(b"a\n\nb\n", [column("s", "none")])
    assert values_of(found) == [[b"a"], [b"none"], [b"b"]]


# ---- numbers ----


def float_texts():
    """Of all sizes and lengths, near ties, as programs print them and as nobody does."""
    chance = random.Random(5)
    yield from ["0", "-0", "0.0", "-0.0e99", "1", "-1.", ".5", "+.5", "00012", "1e0", "1E+05",
                "9007199254740993", "9007199254740992.5", "1e23", "8.5e22", "1e-27", "1e27",
                "1e28", "123456789012345678e27", "18446744073709551615", "18446744073709551616",
                "9999999999999999999", "99999999999999999999", "0.1", "0.2", "0.3", "1e-400",
                "4.9e-324", "2.4703282292062328e-324", "2.2250738585072011e-308", "1e308",
                "1.7976931348623157e308", "inf", "-Infinity", "iNf", "nan", "-NaN", "+inf",
                "1" * 38, "0." + "0" * 300 + "1", "16777217", "16777219", "33554435",
                "1.00000005960464477539", "1.000000059604644775390626", "3.4028235e38",
                "3.40282346638528859811704183484516925440e+38", "1.17549435e-38", "1e-45",
                "0.000000000000000000000000000000000000000123", "1e0000000002", "1e-00003"]  # fmt: skip
    for _ in range(1500):
        bits = chance.getrandbits(64)
        value = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
        if math.isfinite(value) and abs(value) < 1e300:
            yield repr(value)
    for _ in range(3000):
        value = chance.choice([chance.random, lambda: chance.gauss(0, 1e5),
                               lambda: chance.randrange(10**17) / 2**chance.randrange(60)])()
        yield chance.choice(["%r", "%.3f", "%.6g", "%.17g", "%.18e", "%.20f", "%.40e"]) % value
    for _ in range(2000):  # halfway between two float32 or float64, and just beside that
        n, e = chance.choice([(24, 39), (53, 12)])
        tie = (2 * chance.randrange(2 ** (n - 1), 2**n) + 1) * 2 ** chance.randrange(e)
        yield str(tie + chance.choice([-1, 0, 0, 1]))
        yield f"{tie}e{chance.randrange(-30, 1)}"
    for _ in range(300):  # as a float64 it is halfway between two float32; as it is written, not quite
        yield "%.15f" % (8 + (chance.randrange(2**20) + 0.5) / 2**20)


def test_floats_are_the_nearest_to_what_is_written(reader):
    texts = list(dict.fromkeys(float_texts()))
    data = "".join(f'{text},"{text} "\n' for text in texts).encode()
    wide = reader.csv(data, ["d", "s"])
    assert len(wide) == len(texts) > 7000
    for text, item in zip(texts, wide):
        wanted = float(text)
        got = number("d", item.values[0])
        assert np.float64(wanted).tobytes() == np.float64(got).tobytes() or math.isnan(wanted), text
        assert math.isnan(wanted) == math.isnan(got), text


def nearest_f32(text):
    """Rounded once, exactly, by comparing fractions; NumPy's goes by way of float64."""
    from fractions import Fraction
    value = float(text)
    if math.isnan(value) or math.isinf(value):
        return np.float32(value)
    exact = Fraction(text.strip())
    near = np.float32(value)
    with np.errstate(over="ignore"):
        choices = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    choices = [choice for choice in choices if np.isfinite(choice)]

    def distance(choice):
        return abs(Fraction(float(choice)) - exact), int(choice.view("u4")) & 1

    return min(choices, key=distance)


def test_float32_is_rounded_once(reader):
    texts = [text for text in dict.fromkeys(float_texts()) if not 3.4e38 < abs(float(text)) < math.inf]
    texts += ["3.4028235e38", "-3.4028235677973363e38"]
    found = reader.csv("".join(f"{text}\n" for text in texts).encode(), ["f"])
    n_twice = 0
    for text, item in zip(texts, found):
        wanted, got = nearest_f32(text), np.float32(number("f", item.values[0]))
        assert np.isnan(wanted) == np.isnan(got), text
        assert np.isnan(wanted) or abs(wanted) == abs(got) == 0 or wanted == got, (text, wanted, got)
        n_twice += wanted != np.float32(float(text))
    assert n_twice > 20  # else going by way of float64 would not be noticed


def test_integers_are_those_of_python(reader):
    chance = random.Random(6)
    values = [0, -(2**63), 2**63 - 1, 10**18, -1]
    values += [chance.randrange(-(2**63), 2**63) >> chance.randrange(63) for _ in range(500)]
    texts = [chance.choice(["%d", " %d", "%d\t", '"%d"', "%+d"]) % value for value in values]
    texts += ["-0", "007", "+0"]
    found = reader.csv("\n".join(texts).encode(), ["l"])
    assert [number("l", item.values[0]) for item in found] == values + [0, 7, 0]
