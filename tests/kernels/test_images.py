# SPDX-License-Identifier: Apache-2.0
"""JPEG, PNG and BMP are decoded as Pillow does it; what is corrupt is refused, at whatever byte."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def image_tool(build_tool):
    return build_tool("image_tool")


def picture(height, width, seed=0):
    """Smooth, with some noise, so that every PNG filter and JPEG coefficient occurs."""
    chance = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [128 + 100 * np.sin(x / 7 + y / 11), 128 + 90 * np.cos(y / 5), x * 255 / max(width, 1)]
    noisy = np.stack(planes, -1) + chance.normal(0, 6, (height, width, 3))
    return noisy.clip(0, 255).astype("uint8")


def decode(tool, folder, data, channels=0):
    """The pixels, or what the tool refuses it with."""
    path, out = folder / "image", folder / "pixels"
    path.write_bytes(data)
    (said,) = tool(["decode", channels, path, out])
    if said.startswith("refused"):
        return said
    height, width, n = map(int, said.split()[1:4])
    return np.fromfile(out, "uint8").reshape(height, width, n)


def refusal(tool, folder, data, channels=0):
    said = decode(tool, folder, data, channels)
    assert isinstance(said, str), f"decoded to {said.shape}"
    return said


def saved(image, format, **how):
    file = io.BytesIO()
    image.save(file, format, **how)
    return file.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(
        ">I", zlib.crc32(kind + data))


def png(width, height, bits, colour, rows, *, before=(), interlaced=0, parts=1):
    """A PNG from filtered rows, as `parts` data chunks; Pillow writes only some kinds."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    data = zlib.compress(rows)
    step = -(-len(data) // parts)
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(
        chunk(kind, body) for kind, body in before
    ) + b"".join(chunk(b"IDAT", piece) for piece in pieces) + chunk(b"IEND", b"")


def plain_rows(samples):
    """Rows of bytes that are not filtered."""
    return b"".join(b"\0" + row.tobytes() for row in samples)


# ---- JPEG ----


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (16, 16), (33, 67), (120, 200)])
@pytest.mark.parametrize("how", [{}, {"progressive": True}, {"subsampling": 0}, {"quality": 20},
                                 {"subsampling": 2, "optimize": True}], ids=str)
def test_a_jpeg_has_the_pixels_that_pillow_gives(image_tool, tmp_path, shape, how):
    data = saved(Image.fromarray(picture(*shape)), "JPEG", **how)
    wanted = np.asarray(Image.open(io.BytesIO(data)))
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data), wanted)
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 3), wanted)


def test_a_grey_jpeg_has_one_channel_unless_three_are_asked_for(image_tool, tmp_path):
    data = saved(Image.fromarray(picture(20, 30)[..., 0]), "JPEG")
    wanted = np.asarray(Image.open(io.BytesIO(data)))
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data), wanted[..., None])
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 3),
                                  np.repeat(wanted[..., None], 3, -1))


def test_one_channel_of_a_colour_jpeg_is_its_light(image_tool, tmp_path):
    data = saved(Image.fromarray(picture(40, 50)), "JPEG")
    image = Image.open(io.BytesIO(data))
    image.draft("L", image.size)
    assert image.mode == "L"
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 1)[..., 0], np.asarray(image))


def test_inks_become_colours(image_tool, tmp_path):
    cmyk = np.dstack([picture(24, 40), picture(24, 40, 1)[..., :1]])
    data = saved(Image.fromarray(cmyk, "CMYK"), "JPEG", quality=95)
    inks = np.asarray(Image.open(io.BytesIO(data))).astype(int)  # 255: all of the ink
    wanted = (255 - inks[..., :3]) * (255 - inks[..., 3:]) // 255
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data), wanted)
    grey = (wanted @ [19595, 38470, 7471] + 0x8000) >> 16
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 1)[..., 0], grey)


def test_the_orientation_in_exif_is_ignored(image_tool, tmp_path):
    image = Image.fromarray(picture(10, 30))
    exif = image.getexif()
    exif[0x0112] = 6
    data = saved(image, "JPEG", exif=exif)
    assert decode(image_tool, tmp_path, data).shape == (10, 30, 3)


def test_a_jpeg_has_no_alpha(image_tool, tmp_path):
    data = saved(Image.fromarray(picture(8, 8)), "JPEG")
    said = refusal(image_tool, tmp_path, data, 4)
    assert said == "refused EINVAL 4 channels of a JPEG, which has no alpha: 0, 1 or 3"


def with_frame(data, at, value):
    """The JPEG with one byte of its frame changed; 0 is that of the marker."""
    where = next(i for i in range(len(data)) if data[i : i + 2] in (b"\xff\xc0", b"\xff\xc2"))
    changed = bytearray(data)
    changed[where + at : where + at + len(value)] = value
    return bytes(changed)


@pytest.mark.parametrize("at, value, why", [
    (1, b"\xc3", "EOPNOTSUPP it is a JPEG of a rare kind (lossless or hierarchical, SOF3)"),
    (4, b"\x0c", "EOPNOTSUPP it is a JPEG with 12 bits a sample: 8 are decoded"),
    (5, b"\0\0", "its height or width is 0"),
    (9, b"\x02", "EOPNOTSUPP it is a JPEG with 2 components"),
    (11, b"\x05", "a sampling factor is not 1 to 4"),
    (3, b"\x02", "its frame has no components"),
])  # fmt: skip
def test_a_jpeg_header_that_cannot_be_is_refused(image_tool, tmp_path, at, value, why):
    data = saved(Image.fromarray(picture(16, 16)), "JPEG")
    assert why in refusal(image_tool, tmp_path, with_frame(data, at, value))


def test_a_picture_that_would_be_partly_made_up_is_refused(image_tool, tmp_path):
    """libjpeg warns and goes on; Pillow then gives a picture with wrong pixels. Some damage happens to
    be a valid picture, which nobody can tell."""
    data = saved(Image.fromarray(picture(120, 200)), "JPEG")
    wanted = np.asarray(Image.open(io.BytesIO(data)))
    scan, chance, n_taken, n_refused = data.index(b"\xff\xda") + 14, np.random.default_rng(4), 0, 0
    for _ in range(20):
        damaged = bytearray(data)
        for at in chance.integers(scan, len(data) - 2, 20):
            damaged[at] ^= 1 << chance.integers(8)
        try:
            pixels = np.asarray(Image.open(io.BytesIO(damaged)))
        except OSError:
            continue
        assert (pixels != wanted).mean() > 0.01
        n_taken += 1
        n_refused += isinstance(decode(image_tool, tmp_path, bytes(damaged)), str)
    assert n_taken >= 10 and n_refused > n_taken / 2, (n_taken, n_refused)


def marker(kind, data):
    return b"\xff" + bytes([kind]) + struct.pack(">H", len(data) + 2) + data


def progressive(n_scans):
    """A grey block in so many scans, each of which says in one bit that there is nothing more: the
    first gives a coefficient, the next ones refine it."""
    one_code = bytes([1]) + bytes(15) + b"\0"
    steps = [(0, 0, 0, 13)] + [(0, 0, low + 1, low) for low in range(12, -1, -1)]
    for at in range(1, 64):
        steps += [(at, at, 0, 13)] + [(at, at, low + 1, low) for low in range(12, -1, -1)]
    scans = b"".join(
        marker(0xDA, bytes([1, 1, 0, first, last, high << 4 | low])) + b"\x7f"
        for first, last, high, low in steps[:n_scans]
    )
    return (b"\xff\xd8" + marker(0xDB, bytes([0]) + bytes([1] * 64))
            + marker(0xC2, struct.pack(">BHHB", 8, 8, 8, 1) + bytes([1, 0x11, 0]))
            + marker(0xC4, b"\0" + one_code) + marker(0xC4, b"\x10" + one_code)
            + scans + b"\xff\xd9")  # fmt: skip


def test_a_jpeg_with_endless_scans_is_refused(image_tool, tmp_path):
    assert (decode(image_tool, tmp_path, progressive(400)) == 128).all()
    assert "it has more than 500 scans" in refusal(image_tool, tmp_path, progressive(600))


# ---- PNG ----


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "1", "P"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 9), (40, 61)])
def test_a_png_has_the_pixels_that_pillow_gives(image_tool, tmp_path, mode, shape):
    rgba = np.dstack([picture(*shape), picture(*shape, 1)[..., :1]])
    source = Image.fromarray(rgba)
    image = source.convert("RGB").quantize(16) if mode == "P" else source.convert(mode)
    data = saved(image, "PNG")
    own = {"1": "L", "P": "RGB"}.get(mode, mode)
    for channels, wanted in ((0, own), (1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")):
        array = np.asarray(image.convert(own).convert(wanted))
        array = array.reshape(*shape, -1)
        np.testing.assert_array_equal(decode(image_tool, tmp_path, data, channels), array,
                                      err_msg=f"{mode} as {channels}")


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_samples_of_few_bits_are_spread_over_all_of_the_byte(image_tool, tmp_path, bits):
    chance = np.random.default_rng(bits)
    height, width = 5, 11
    samples = chance.integers(0, 1 << bits, (height, width), dtype="uint8")
    bit_rows = np.unpackbits(samples[..., None], axis=-1)[..., 8 - bits :].reshape(height, -1)
    data = png(width, height, bits, 0, plain_rows(np.packbits(bit_rows, axis=-1)), parts=3)
    wanted = samples * (255 // ((1 << bits) - 1))
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data)[..., 0], wanted)


@pytest.mark.parametrize("colour, n", [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_of_16_bits_the_upper_8_are_taken(image_tool, tmp_path, colour, n):
    samples = np.random.default_rng(n).integers(0, 1 << 16, (6, 7, n)).astype(">u2")
    data = png(7, 6, 16, colour, plain_rows(samples))
    wanted = (samples.astype(int) >> 8).astype("uint8")
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data), wanted)
    if n in (1, 2):
        np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 1), wanted[..., :1])
        np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 3),
                                      np.repeat(wanted[..., :1], 3, -1))


def test_a_palette_with_transparency_has_four_channels(image_tool, tmp_path):
    chance = np.random.default_rng(5)
    palette = chance.integers(0, 256, (9, 3), dtype="uint8")
    alpha = chance.integers(0, 256, 4, dtype="uint8")
    indices = chance.integers(0, 9, (12, 10), dtype="uint8")
    data = png(10, 12, 8, 3, plain_rows(indices),
               before=[(b"PLTE", palette.tobytes()), (b"tRNS", alpha.tobytes())])
    opaque = np.full(5, 255, "uint8")
    wanted = np.column_stack([palette, np.r_[alpha, opaque]])[indices]
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data), wanted)
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 3), wanted[..., :3])


def test_the_transparent_colour_has_no_alpha(image_tool, tmp_path):
    pixels = picture(6, 8)
    pixels[2, 3] = pixels[4, 1] = 10, 20, 30
    data = png(8, 6, 8, 2, plain_rows(pixels), before=[(b"tRNS", struct.pack(">HHH", 10, 20, 30))])
    alpha = np.where((pixels == (10, 20, 30)).all(-1), 0, 255)
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data), pixels)
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 4), np.dstack([pixels, alpha]))


PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
          (0, 1, 1, 2))  # fmt: skip


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (8, 8), (21, 13)])
@pytest.mark.parametrize("channels", [0, 1, 2, 3, 4])
def test_an_interlaced_png_is_put_together(image_tool, tmp_path, shape, channels):
    pixels = picture(*shape)
    rows = b""
    for x, y, across, down in PASSES:
        part = pixels[y::down, x::across]
        rows += plain_rows(part) if part.size else b""
    data = png(shape[1], shape[0], 8, 2, rows, interlaced=1, parts=2)
    mode = {0: "RGB", 1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels]
    wanted = np.asarray(Image.fromarray(pixels).convert(mode)).reshape(*shape, -1)
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, channels), wanted)


def test_a_large_png_is_handed_over_in_blocks(image_tool, tmp_path):
    """More than one stored block, the last of them full."""
    for width, height in ((65534, 2), (400, 300), (65534, 1), (21844, 1)):
        pixels = np.random.default_rng(1).integers(0, 256, (height, width), dtype="uint8")
        got = decode(image_tool, tmp_path, png(width, height, 8, 0, plain_rows(pixels)))
        np.testing.assert_array_equal(got[..., 0], pixels)


ROW = b"\0\1\2\3"


@pytest.mark.parametrize("data, why", [
    (png(0, 1, 8, 0, ROW), "its height or width is 0"),
    (png(3, 1, 3, 0, ROW), "it has a kind of colours that there is not"),
    (png(3, 1, 16, 3, ROW), "it has a kind of colours that there is not"),
    (png(3, 1, 8, 3, ROW), "its palette is missing"),
    (png(3, 1, 8, 3, ROW, before=[(b"PLTE", b"1234")]), "its palette has no whole colours"),
    (png(3, 1, 8, 0, ROW, before=[(b"tRNS", b"1")]), "its transparency does not fit"),
    (png(3, 1, 8, 0, ROW, before=[(b"NEWS", b"")]), "a chunk that must be understood"),
    (png(4, 1, 8, 0, ROW), "its data is too short for 1 x 4 pixels"),
    (png(2, 1, 8, 0, ROW), "its data is too long for 1 x 2 pixels"),
    (png(3, 1, 8, 0, b"\7\1\2\3"), "corrupt: "),
    (png(3, 1, 8, 0, ROW).replace(b"IDAT", b"IDAR"), "it has a chunk that must"),
    (png(3, 1, 8, 0, ROW).replace(b"IDAT", b"eDAT"), "it has no data"),
    (png(3, 1, 8, 0, ROW, before=[(b"tEXt", b"hello")]).replace(b"hello", b"hellO"),
     "the checksum of the chunk at byte 33 does not match"),
    (png(3, 1, 8, 0, ROW).replace(b"\r\n", b"\n\n"), "its signature was changed"),
])  # fmt: skip
def test_a_png_that_contradicts_itself_is_refused(image_tool, tmp_path, data, why):
    assert why in refusal(image_tool, tmp_path, data)


def test_an_index_past_the_palette_is_black(image_tool, tmp_path):
    data = png(3, 1, 8, 3, b"\0\0\5\0", before=[(b"PLTE", b"123")])
    assert decode(image_tool, tmp_path, data)[0].tolist() == [[49, 50, 51], [0, 0, 0], [49, 50, 51]]


# ---- BMP ----


def bmp(width, height, bits, rows, *, palette=b"", compression=0, header=40, n_colours=0, offset=None):
    """Rows as they lie in the file; Pillow writes only some kinds."""
    start = 14 + header + len(palette) if offset is None else offset
    info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(rows), 0, 0,
                       n_colours or len(palette) // 4, 0)
    return (b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + info +
            bytes(header - 40) + palette + rows)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 60])
@pytest.mark.parametrize("mode", ["L", "P", "RGB"])
def test_a_bmp_is_decoded_as_pillow_does(image_tool, tmp_path, mode, width):
    image = Image.fromarray(picture(31, width)).convert(mode)
    data = saved(image, "BMP")
    wanted = np.asarray(Image.open(io.BytesIO(data)).convert("RGB" if mode == "P" else mode))
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data), wanted.reshape(31, width, -1))
    rgb = np.asarray(image.convert("RGB"))
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 3), rgb)
    grey = np.asarray(Image.fromarray(rgb).convert("L"))
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 1)[..., 0], grey)
    np.testing.assert_array_equal(decode(image_tool, tmp_path, data, 2)[..., 1], 255)


def test_a_bmp_may_go_downwards_and_have_an_alpha_or_a_longer_header(image_tool, tmp_path):
    rows = bytes(range(24))
    wanted = np.arange(24, dtype="u1").reshape(2, 3, 4)[..., [2, 1, 0, 3]]
    for header in (40, 108, 124):
        down, up = (bmp(3, height, 32, rows, header=header) for height in (-2, 2))
        np.testing.assert_array_equal(decode(image_tool, tmp_path, down), wanted)
        np.testing.assert_array_equal(decode(image_tool, tmp_path, up), wanted[::-1])
    np.testing.assert_array_equal(decode(image_tool, tmp_path, down, 3), wanted[..., :3])


@pytest.mark.parametrize("data, why", [
    (b"BM......", "refused PL_ECORRUPT the BMP is cut off: it has 8 bytes, and its header speaks of 54"),
    (bmp(3, 2, 24, bytes(23)), "refused PL_ECORRUPT the BMP is cut off: it has 77 bytes, and its header "
                               "speaks of 78"),
    (bmp(2**31 - 1, -(2**31), 32, b""), "refused PL_ECORRUPT the BMP is cut off"),
    (bmp(0, 2, 24, b""), "refused PL_ECORRUPT the BMP is corrupt at byte 18: it has 2 x 0 pixels"),
    (bmp(3, 2, 24, bytes(24), offset=10), "refused PL_ECORRUPT the BMP is cut off"),
    (bmp(3, 2, 8, bytes(8), n_colours=300), "refused PL_ECORRUPT the BMP is corrupt at byte 46"),
    (bmp(1, 1, 8, b"\3\0\0\0", palette=bytes(8)),
     "refused PL_ECORRUPT the BMP is corrupt at byte 62: colour 3 of 2"),
    (bmp(3, 2, 4, bytes(8)), "refused EOPNOTSUPP it is a BMP of 4 bits a pixel, with compression 0"),
    (bmp(3, 2, 8, bytes(8), compression=1), "refused EOPNOTSUPP it is a BMP of 8 bits a pixel, with"),
    (b"BM" + bytes(12) + b"\x0c" + bytes(60), "refused EOPNOTSUPP it is a BMP with a header of 12 bytes"),
])  # fmt: skip
def test_a_bmp_that_is_not_whole_or_rare_is_refused(image_tool, tmp_path, data, why):
    assert refusal(image_tool, tmp_path, data).startswith(why)


# ---- both ----


@pytest.mark.parametrize("data, why", [
    (b"", "refused PL_EFORMAT there are no bytes: an image is expected"),
    (b"GIF89a....", "refused EOPNOTSUPP it is a GIF file: JPEG, PNG and BMP are decoded; convert it"),
    (b"RIFF....WEBPVP8 ", "refused EOPNOTSUPP it is a WebP file"),
    (b"II*\0....", "refused EOPNOTSUPP it is a TIFF file"),
    (b"hello", "refused PL_EFORMAT its first bytes (68 65) are those of no JPEG, PNG or BMP"),
    (b"\x89", "refused PL_EFORMAT"),
])  # fmt: skip
def test_other_files_are_refused_by_name(image_tool, tmp_path, data, why):
    assert refusal(image_tool, tmp_path, data).startswith(why)


def small_files():
    image = Image.fromarray(picture(18, 21))
    yield "baseline", saved(image, "JPEG")
    yield "progressive", saved(image, "JPEG", progressive=True)
    yield "grey", saved(image.convert("L"), "JPEG")
    yield "png", saved(image, "PNG")
    yield "palette", saved(image.quantize(16), "PNG")
    yield "parts", png(21, 18, 8, 2, plain_rows(picture(18, 21)), parts=5)


@pytest.mark.parametrize("kind, data", list(small_files()), ids=lambda value: value if isinstance(
    value, str) else "")
def test_a_file_cut_off_at_any_byte_is_refused(image_tool, tmp_path, kind, data):
    path = tmp_path / kind
    path.write_bytes(data)
    (said,) = image_tool(["cut", 0, path])
    assert said == f"ok {len(data)} {len(data)}"


@pytest.mark.parametrize("kind, data", list(small_files()), ids=lambda value: value if isinstance(
    value, str) else "")
def test_changed_bits_never_crash_and_in_a_png_are_always_found(image_tool, tmp_path, kind, data):
    path = tmp_path / kind
    path.write_bytes(data)
    (said,) = image_tool(["flip", 0, path, 400])
    n_refused = int(said.split()[1])
    if data[:1] == b"\x89":
        assert n_refused >= 399, said  # the same bit twice is no change
    else:
        assert 100 < n_refused <= 400, said


@pytest.mark.parametrize("data, work", [
    (png(60000, 60000, 8, 6, b""), 60000 * 240001),
    (png(60000, 60000, 1, 0, b""), 60000 * 7501),
], ids=["rgba", "bits"])  # fmt: skip
def test_a_bomb_costs_nothing_but_a_look_at_its_header(image_tool, tmp_path, data, work):
    assert work > 64 << 20
    assert "PL_EBUDGET too large for this tool" in refusal(image_tool, tmp_path, data)
