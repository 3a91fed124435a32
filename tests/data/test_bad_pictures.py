# SPDX-License-Identifier: Apache-2.0
"""Pictures that are corrupt, or promise far more than there is memory for: each costs itself."""

import io
import json
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import mapping
import sources
from sources import FAIL, QUARANTINE, SKIP

N_GOOD = 12


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bomb(side=60000):
    """Few bytes that would be 60000 x 60000 pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(4 << 20), 9)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows)
            + chunk(b"IEND", b""))  # fmt: skip


def encoded(format, size=(40, 30), seed=0):
    pixels = np.random.default_rng(seed).integers(0, 255, (*size, 3), "u1")
    to = io.BytesIO()
    Image.fromarray(pixels).save(to, format)
    return to.getvalue()


def jpeg_bomb(side=60000):
    """A JPEG whose frame header says so."""
    good = encoded("JPEG")
    at = good.index(b"\xff\xc0") + 5
    return good[:at] + struct.pack(">HH", side, side) + good[at + 4 :]


BAD = {
    "png_bomb": (png_bomb(), "PL_EBUDGET", "10.1 GiB"),
    "jpeg_bomb": (jpeg_bomb(), "PL_EBUDGET", "10.1 GiB"),
    "cut_jpeg": (encoded("JPEG")[:-400], "PL_ECORRUPT", "JPEG"),
    "cut_png": (encoded("PNG")[:-400], "PL_ECORRUPT", "PNG"),
    "text": (b"no picture", "PL_EFORMAT", ""),
    "empty": (b"", "PL_EFORMAT", ""),
}


@pytest.fixture
def folder(tmp_path):
    """Good pictures, and one of each bad kind after every second."""
    paths, bad = [], {}
    for i in range(N_GOOD):
        paths.append(tmp_path / f"{i:02}.jpg")
        paths[-1].write_bytes(encoded("JPEG" if i % 3 else "PNG", seed=i))
        if i % 2 and len(bad) < len(BAD):
            name = list(BAD)[len(bad)]
            paths.append(tmp_path / f"bad_{name}")
            paths[-1].write_bytes(BAD[name][0])
            bad[len(paths) - 1] = name
    return paths, bad


@pytest.mark.parametrize("n_parallel", [1, 3, mapping.AUTO])
def test_a_bad_picture_is_an_error_at_its_place_that_names_file_and_numbers(
        runtime, folder, n_parallel):  # fmt: skip
    paths, bad = folder
    with mapping.pictures(runtime, paths, n_parallel=n_parallel) as dataset:
        found = iter(dataset.prefetch(3)).everything()
    assert len(found) == len(paths)
    for i, (path, element) in enumerate(zip(paths, found)):
        if i not in bad:
            assert element[1] == str(path).encode() and element[0].shape == (64, 64, 3)
            continue
        _, code, text = BAD[bad[i]]
        assert element.code == code
        assert f"map: element {i}," in element.message and text in element.message
        assert str(path) in element.message


@pytest.mark.parametrize("n_parallel", [1, mapping.AUTO])
def test_skipped_pictures_cost_one_element_each_and_are_listed(runtime, folder, n_parallel):
    paths, bad = folder
    with mapping.pictures(runtime, paths, n_parallel=n_parallel) as dataset:
        iterator = iter(dataset.batch(4).prefetch(2).with_policy(SKIP))
        names = [name for _, names in iterator for name in names]
        listed = mapping.bads(iterator)
        assert iterator.bad_count == (len(BAD), len(paths))
        assert [one.path for one in listed] == [str(paths[i]).encode() for i in sorted(bad)]
        iterator.close()
    assert names == [str(path).encode() for i, path in enumerate(paths) if i not in bad]
    assert [one.index for one in listed] == sorted(bad)


def test_a_quarantine_is_lines_of_json(runtime, folder, tmp_path):
    paths, bad = folder
    log = tmp_path / "bad.jsonl"
    with mapping.pictures(runtime, paths) as dataset:
        dataset = dataset.with_policy(QUARANTINE, quarantine_path=str(log).encode())
        assert len(list(iter(dataset))) == N_GOOD
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["index"] for line in lines] == sorted(bad)
    assert [line["code"] for line in lines] == [BAD[bad[line["index"]]][1] for line in lines]
    for line in lines:
        assert set(line) == {"time", "stage", "index", "path", "offset", "code", "op", "reason"}
        assert line["path"] == str(paths[line["index"]]) and line["reason"]


def test_explain_is_json_with_all_stages(runtime, folder):
    paths, _ = folder
    with mapping.pictures(runtime, paths) as dataset:
        iterator = iter(dataset.with_policy(SKIP).batch(4))
        assert len(list(iterator)) == N_GOOD // 4
        told = mapping.explain(iterator)
        iterator.close()
    assert [stage["class"] for stage in told["stages"]] == ["batch", "options", "map", "files"]
    by_class = {stage["class"]: stage for stage in told["stages"]}
    assert by_class["map"]["elements"] == N_GOOD and by_class["map"]["bad"] == len(BAD)
    assert by_class["batch"]["bytes"] > N_GOOD * 64 * 64 * 3 * 4
    assert by_class["map"]["busy_ns"] > 0 and 0 <= told["consumer_share"] <= 1


def test_a_jpeg_that_is_cut_off_is_made_up_where_that_is_asked_for(runtime, tmp_path):
    pixels = np.full((64, 64, 3), 200, "u1")
    path = tmp_path / "cut.jpg"
    Image.fromarray(pixels).save(path)
    whole = path.read_bytes()
    begin = whole.index(b"\xff\xda") + 14
    for n in range(begin, len(whole)):
        path.write_bytes(whole[:n])
        with mapping.pictures(runtime, [path]) as dataset:
            (refused,) = iter(dataset).everything()
        assert refused.code == "PL_ECORRUPT" and "it is cut off" in refused.message
        with mapping.pictures(runtime, [path], try_recover_truncated=True) as dataset:
            ((found, _),) = list(iter(dataset))
        assert found.shape == (64, 64, 3)
    assert np.abs(found[:8] - 200).max() < 4  # what was there is still right
    path.write_bytes(whole[: begin - 20])
    with mapping.pictures(runtime, [path], try_recover_truncated=True) as dataset:
        assert iter(dataset).everything()[0].code == "PL_ECORRUPT"


def test_the_fail_policy_is_the_default(runtime, folder):
    paths, bad = folder
    with mapping.pictures(runtime, paths) as dataset:
        for chosen in (dataset, dataset.with_policy(FAIL)):
            found = iter(chosen).everything()
            kinds = [isinstance(one, sources.base.Refused) for one in found]
            assert [i for i, is_bad in enumerate(kinds) if is_bad] == sorted(bad)
