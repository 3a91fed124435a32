# SPDX-License-Identifier: Apache-2.0
"""Files, pictures and records: PIL, Python and TensorFlow's documented examples are the measure."""
import gzip
import io
import struct
import zlib

import numpy as np
import PIL.Image
import pytest

import plimsoll.tf as tf
from plimsoll.tf import errors
from test_array import same, traced

RNG = np.random.default_rng(4)
PICTURE = RNG.integers(0, 256, (7, 5, 3), dtype=np.uint8)


def encoded(array, kind):
    buffer = io.BytesIO()
    PIL.Image.fromarray(array).save(buffer, kind)
    return buffer.getvalue()


# ---- files ----


def test_files_are_read_and_written(tmp_path):
    path = str(tmp_path / "deep" / "a.txt")
    tf.io.write_file(path, "abc")
    same(tf.io.read_file(path), b"abc", tf.string)
    same(tf.io.read_file(tf.constant(path)), b"abc")


def test_a_missing_file_is_named_where_it_is_read(tmp_path):
    with pytest.raises(errors.NotFoundError, match="none.txt"):
        tf.io.read_file(str(tmp_path / "none.txt"))


def test_matching_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.png"):
        (tmp_path / name).write_bytes(b"")
    found = tf.io.matching_files(str(tmp_path / "*.txt"))
    same(found, [str(tmp_path / "a.txt").encode(), str(tmp_path / "b.txt").encode()], tf.string)
    assert tf.io.matching_files([str(tmp_path / "*.png"), str(tmp_path / "x*")]).shape.as_list() == [1]


def test_gfile(tmp_path):
    g = tf.io.gfile
    folder, path = g.join(str(tmp_path), "d", "e"), str(tmp_path / "d" / "f.txt")
    g.makedirs(folder)
    with g.GFile(path, "w") as file:
        file.write("one\ntwo\n")
    with g.GFile(path) as file:
        assert file.readline() == "one\n" and file.tell() == 4 and list(file) == ["two\n"]
    with g.GFile(path, "rb") as file:
        assert file.read(3) == b"one" and file.size() == 8
        file.seek(1)
        assert file.read(2) == b"ne" and file.seekable()
        file.seek(position=4)
        assert file.readlines() == [b"two\n"]
    with g.GFile(path, "a") as file:
        file.write("three\n")
        file.flush()
        assert g.stat(path).length == 14
    with g.GFile(path, "r+") as file:
        file.write("O")
    assert [folder for folder, _, _ in g.walk(str(tmp_path / "d"))][0] == str(tmp_path / "d")
    with pytest.raises(errors.InvalidArgumentError):
        g.GFile(path, "q")
    assert g.exists(path) and g.isdir(folder) and g.listdir(str(tmp_path / "d")) == ["e", "f.txt"]
    assert g.glob(str(tmp_path / "d" / "*.txt")) == [path] and g.stat(path).length == 14
    g.copy(path, path + "2")
    with pytest.raises(errors.AlreadyExistsError):
        g.copy(path, path + "2")
    g.rename(path + "2", path + "3")
    g.remove(path + "3")
    with pytest.raises(errors.NotFoundError):
        g.remove(path + "3")
    with pytest.raises(errors.NotFoundError):
        g.GFile(path + "3").read()
    with pytest.raises(errors.NotFoundError):
        g.listdir(path + "3")
    g.rmtree(str(tmp_path / "d"))
    assert not g.exists(path)


# ---- pictures ----


@pytest.mark.parametrize("kind, decode", [("PNG", "decode_png"), ("PNG", "decode_image"),
                                          ("BMP", "decode_image"), ("BMP", "decode_bmp")])
def test_pictures_are_decoded_as_pil_does(kind, decode):
    same(getattr(tf.io, decode)(encoded(PICTURE, kind)), PICTURE, tf.uint8)


def test_jpegs_are_decoded():
    smooth = np.broadcast_to(np.arange(0, 240, 8, dtype=np.uint8)[:, None, None], (30, 40, 3))
    data = encoded(np.ascontiguousarray(smooth), "JPEG")
    expected = np.asarray(PIL.Image.open(io.BytesIO(data)))
    for decode in (tf.io.decode_jpeg, tf.io.decode_image, tf.image.decode_jpeg):
        assert abs(decode(data).numpy().astype(int) - expected).max() <= 3
    assert bool(tf.io.is_jpeg(data)) and not bool(tf.io.is_jpeg(encoded(PICTURE, "PNG")))
    assert tf.io.decode_jpeg(data, channels=1).shape.as_list() == [30, 40, 1]


def test_channels_and_dtypes():
    data = encoded(PICTURE, "PNG")
    assert tf.io.decode_png(data, channels=4).shape.as_list() == [7, 5, 4]
    real = tf.io.decode_image(data, dtype=tf.float32)
    np.testing.assert_allclose(real.numpy(), PICTURE / 255, rtol=1e-6)
    with pytest.raises(ValueError):
        tf.io.decode_image(data, channels=2)


def interlaced(array):
    """A PNG of 16 bits whose rows come in Adam7's seven passes, unfiltered."""
    height, width, channels = array.shape
    passes = b""
    for y, x, down, right in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2),
                              (0, 1, 2, 2), (1, 0, 2, 1)):
        for row in array[y::down, x::right].astype(">u2") if x < width else ():
            passes += b"\0" + row.tobytes()
    head = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 1)
    data = b"\x89PNG\r\n\x1a\n"
    for kind, body in ((b"IHDR", head), (b"IDAT", zlib.compress(passes)), (b"IEND", b"")):
        data += struct.pack(">I", len(body)) + kind + body
        data += struct.pack(">I", zlib.crc32(kind + body))
    return data


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("pack", [lambda a: tf.io.encode_png(tf.constant(a)).numpy(), interlaced])
def test_pngs_of_16_bits(channels, pack):
    pixels = RNG.integers(0, 1 << 16, (9, 13, channels), dtype=np.uint16)
    data = pack(pixels)
    same(tf.io.decode_png(data, dtype=tf.uint16), pixels, tf.uint16)
    same(tf.io.decode_image(data), pixels >> 8, tf.uint8)
    real = tf.io.decode_image(data, dtype=tf.float32)
    np.testing.assert_allclose(real.numpy(), pixels / 65535, rtol=1e-6)
    colours = pixels[..., :1].repeat(3, 2) if channels < 3 else pixels[..., :3]
    same(tf.io.decode_png(data, 3, tf.uint16), colours, tf.uint16)
    alpha = pixels[..., -1:] if channels in (2, 4) else np.full((9, 13, 1), 65535, np.uint16)
    same(tf.io.decode_png(data, 4, tf.uint16), np.concatenate([colours, alpha], 2), tf.uint16)
    grey = tf.io.decode_png(data, 1, tf.uint16).numpy()[..., 0]
    light = colours @ [0.299, 0.587, 0.114]
    assert abs(grey - light).max() <= 1


def test_a_grey_png_of_16_bits_is_what_pil_has():
    pixels = RNG.integers(0, 1 << 16, (7, 5), dtype=np.uint16)
    same(tf.io.decode_png(encoded(pixels, "PNG"), dtype=tf.uint16), pixels[..., None], tf.uint16)
    run = traced(lambda data: tf.io.decode_png(data, 1, tf.uint16), (tf.string, []))
    assert run.output.dtype == tf.uint16
    np.testing.assert_array_equal(run(encoded(pixels, "PNG")), pixels[..., None])


def test_8_bits_become_16_as_in_tensorflow():
    """A PNG's are repeated, those of others are shifted."""
    wide = PICTURE.astype(np.uint16)
    same(tf.io.decode_png(encoded(PICTURE, "PNG"), dtype=tf.uint16), wide * 257, tf.uint16)
    same(tf.io.decode_image(encoded(PICTURE, "BMP"), dtype=tf.uint16), wide * 256, tf.uint16)
    for kind in ("PNG", "BMP"):
        real = tf.io.decode_image(encoded(PICTURE, kind), dtype=tf.float32)
        np.testing.assert_allclose(real.numpy(), PICTURE / 255, rtol=1e-6)


def test_pixels_of_other_dtypes_are_refused():
    data = encoded(PICTURE, "PNG")
    with pytest.raises(errors.InvalidArgumentError, match="uint8 or uint16"):
        tf.io.decode_png(data, dtype=tf.float32)
    with pytest.raises(errors.InvalidArgumentError, match="uint8, uint16 or float32"):
        tf.io.decode_image(data, dtype=tf.float64)


def test_a_gif_is_refused_by_name():
    for decode in (tf.io.decode_image, tf.io.decode_png, tf.io.decode_jpeg):
        with pytest.raises(NotImplementedError, match="it is a GIF file: .*; convert it"):
            decode(encoded(PICTURE, "GIF"))
    for module, name in ((tf.io, "tf.io"), (tf.image, "tf.image")):
        with pytest.raises(NotImplementedError, match=f"{name}.decode_gif: .* convert GIF .* PNG"):
            module.decode_gif


def test_what_is_no_picture_is_an_invalid_argument():
    for data in (b"", b"not a picture", encoded(PICTURE, "PNG")[:-30]):
        with pytest.raises(errors.InvalidArgumentError):
            tf.io.decode_image(data)


def test_traced_pictures():
    run = traced(lambda data: tf.io.decode_image(data, channels=3), (tf.string, []))
    assert run.output.shape.as_list() == [None, None, 3] and run.output.dtype == tf.uint8
    np.testing.assert_array_equal(run(encoded(PICTURE, "PNG")), PICTURE)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pngs_are_encoded_so_that_pil_reads_them(channels):
    pixels = RNG.integers(0, 256, (4, 6, channels), dtype=np.uint8)
    found = np.asarray(PIL.Image.open(io.BytesIO(tf.io.encode_png(pixels).numpy())))
    np.testing.assert_array_equal(found.reshape(4, 6, channels), pixels)
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.encode_png(tf.constant([[[1.0]]]))


# ---- bytes ----


def test_decode_raw():
    same(tf.io.decode_raw(b"\1\0\2\0", tf.int16), [1, 2], tf.int16)
    same(tf.io.decode_raw(b"\0\1", tf.uint16, little_endian=False), [1], tf.uint16)
    same(tf.io.decode_raw(["ab", "cd"], tf.uint8), [[97, 98], [99, 100]])
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.decode_raw(b"abc", tf.int16)


def test_base64_and_packed_bytes():
    same(tf.io.encode_base64(["a?>~", "ab"]), [b"YT8-fg", b"YWI"])
    same(tf.io.encode_base64("ab", pad=True), b"YWI=")
    same(tf.io.decode_base64("YT8-fg"), b"a?>~")
    same(tf.io.decode_compressed([zlib.compress(b"abc")], "ZLIB"), [b"abc"])
    same(tf.io.decode_compressed(gzip.compress(b"abc"), "GZIP"), b"abc")
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.decode_compressed("abc", "ZLIB")


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8", "float64", "float16"])
def test_tensors_as_bytes(dtype):
    array = RNG.integers(0, 2, (2, 0 if dtype == "uint8" else 3)).astype(dtype)
    same(tf.io.parse_tensor(tf.io.serialize_tensor(array), dtype), array, dtype)


def test_tensors_as_bytes_are_tensorflows():
    """What TensorFlow writes for tf.constant([1, 2]), and for texts."""
    data = b"\x08\x03\x12\x04\x12\x02\x08\x02\x22\x08\x01\0\0\0\x02\0\0\0"
    assert tf.io.serialize_tensor(tf.constant([1, 2])).numpy() == data
    same(tf.io.parse_tensor(data, tf.int32), [1, 2], tf.int32)
    same(tf.io.parse_tensor(tf.io.serialize_tensor(["a", "bc"]), tf.string), [b"a", b"bc"])
    # as others write short ones: a list of numbers, the last for all that are missing
    same(tf.io.parse_tensor(b"\x08\x01\x12\x04\x12\x02\x08\x03\x2a\x04\0\0\x80\x3f", tf.float32),
         [1.0, 1.0, 1.0])
    same(tf.io.parse_tensor(b"\x08\x03\x12\x04\x12\x02\x08\x02\x3a\x03\x07\xac\x02", tf.int32), [7, 300])
    same(tf.io.parse_tensor(b"\x08\x03\x12\x04\x12\x02\x08\x02\x38\x07", tf.int32), [7, 7])
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.parse_tensor(b"\x08" + b"\xff" * 12, tf.int32)
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.parse_tensor(data, tf.float32)
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.parse_tensor(data[:-3], tf.int32)


# ---- CSV ----


def test_csv():
    a, b, c = tf.io.decode_csv(["1,x,0.5", '2,"y,""z""",'], [tf.int32, [""], [7.0]])
    same(a, [1, 2], tf.int32)
    same(b, [b"x", b'y,"z"'], tf.string)
    same(c, [0.5, 7.0], tf.float32)
    only = tf.io.decode_csv("1;NA;3", [[0], [9]], field_delim=";", na_value="NA", select_cols=[0, 1])
    assert [int(x) for x in only] == [1, 9]


def test_csv_that_is_wrong():
    for line, defaults in (("1,2", [[0]]), ("x", [[0]]), ("", [tf.int32])):
        with pytest.raises(errors.InvalidArgumentError):
            tf.io.decode_csv(line, defaults)


# ---- examples ----


def example(**features):
    made = {}
    for name, values in features.items():
        if isinstance(values[0], bytes):
            made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif isinstance(values[0], float):
            made[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        else:
            made[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def test_single_examples():
    record = example(n=[7], x=[1.0, 2.0, 3.0, 4.0], text=[b"a"], tags=[b"p", b"q"])
    out = tf.io.parse_single_example(record, {
        "n": tf.io.FixedLenFeature([], tf.int64), "x": tf.io.FixedLenFeature([2, 2], tf.float32),
        "text": tf.io.FixedLenFeature([], tf.string), "tags": tf.io.VarLenFeature(tf.string),
        "missing": tf.io.FixedLenFeature([2], tf.int64, default_value=[5, 6]),
        "all": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True)})
    same(out["n"], 7, tf.int64)
    same(out["x"], [[1.0, 2.0], [3.0, 4.0]], tf.float32)
    same(out["text"], b"a")
    same(out["missing"], [5, 6])
    same(out["all"], np.zeros(0, object), tf.string)
    same(out["tags"].values, [b"p", b"q"])
    same(out["tags"].indices, [[0], [1]], tf.int64)
    same(out["tags"].dense_shape, [2], tf.int64)


def test_batches_of_examples():
    records = [example(n=[1], v=[1, 2]), example(n=[2], v=[3])]
    out = tf.io.parse_example(records, {
        "n": tf.io.FixedLenFeature([], tf.int64), "v": tf.io.VarLenFeature(tf.int64)})
    same(out["n"], [1, 2], tf.int64)
    same(out["v"].values, [1, 2, 3], tf.int64)
    same(out["v"].indices, [[0, 0], [0, 1], [1, 0]], tf.int64)
    same(out["v"].dense_shape, [2, 2], tf.int64)
    same(tf.sparse.to_dense(out["v"]), [[1, 2], [3, 0]])
    padded = tf.io.parse_example(records, {"v": tf.io.FixedLenSequenceFeature(
        [], tf.int64, allow_missing=True, default_value=-1)})
    same(padded["v"], [[1, 2], [3, -1]])
    zeros = tf.io.parse_example(records, {"v": tf.io.FixedLenSequenceFeature(
        [], tf.int64, allow_missing=True)})
    same(zeros["v"], [[1, 2], [3, 0]])


def test_examples_that_are_not_as_described():
    with pytest.raises(errors.InvalidArgumentError, match="n"):
        tf.io.parse_single_example(example(m=[1]), {"n": tf.io.FixedLenFeature([], tf.int64)})
    with pytest.raises(errors.InvalidArgumentError):
        tf.io.parse_single_example(example(n=[1, 2]), {"n": tf.io.FixedLenFeature([], tf.int64)})
    with pytest.raises(ValueError):
        tf.io.parse_single_example(example(n=[1]), {})


def test_traced_examples():
    run = traced(lambda record: tf.io.parse_single_example(
        record, {"x": tf.io.FixedLenFeature([2], tf.float32)})["x"] * 2, (tf.string, []))
    assert run.output.shape.as_list() == [2]
    assert run(example(x=[1.0, 2.0])).tolist() == [2.0, 4.0]


def test_traced_examples_of_any_length():
    run = traced(lambda record: tf.io.parse_single_example(
        record, {"v": tf.io.VarLenFeature(tf.int64)})["v"].indices, (tf.string, []))
    assert run(example(v=[5, 6, 7])).tolist() == [[0], [1], [2]]
    run = traced(lambda records: tf.io.parse_example(
        records, {"v": tf.io.VarLenFeature(tf.int64)})["v"].values, (tf.string, [None]))
    assert run([example(v=[5, 6]), example(v=[7])]).tolist() == [5, 6, 7]


@pytest.mark.parametrize("packing", [None, "GZIP", "ZLIB"])
def test_records_are_written(tmp_path, packing):
    path = str(tmp_path / "r.tfrecord")
    options = tf.io.TFRecordOptions(compression_type=packing) if packing else None
    with tf.io.TFRecordWriter(path, options) as writer:
        for i in range(3):
            writer.write(b"record %d" % i)
    found = tf.data.TFRecordDataset(path, compression_type=packing)
    assert [bytes(r) for r in found.as_numpy_iterator()] == [b"record %d" % i for i in range(3)]
    with pytest.raises(ValueError):
        tf.io.TFRecordOptions("LZ4")


@pytest.mark.parametrize("how", ["", "GZIP", "ZLIB"])
def test_what_a_writer_flushed_can_be_read(tmp_path, how):
    path = str(tmp_path / "records")
    with tf.io.TFRecordWriter(path, how or None) as writer:
        writer.write(b"first")
        writer.flush()
        assert (tmp_path / "records").stat().st_size > 0
        if not how:
            assert list(tf.data.TFRecordDataset(path).as_numpy_iterator()) == [b"first"]
        writer.write(b"second")
    found = tf.data.TFRecordDataset(path, how).as_numpy_iterator()
    assert list(found) == [b"first", b"second"]


def test_what_is_no_example_is_an_invalid_argument():
    feature = {"a": tf.io.FixedLenFeature([], tf.int64)}
    with pytest.raises(errors.InvalidArgumentError, match="could not parse"):
        tf.io.parse_single_example(b"garbage", feature)
    with pytest.raises(errors.InvalidArgumentError, match="could not parse"):
        tf.io.parse_example([b"garbage"], feature)


# ---- JPEGs that are written ----


def _picture(height, width, n_channels):
    small = np.random.default_rng(1).integers(0, 255, (4, 5, 3), dtype=np.uint8)
    large = PIL.Image.fromarray(small).resize((width, height), PIL.Image.BICUBIC)
    return np.asarray(large)[..., :n_channels].copy()


@pytest.mark.parametrize("shape", [(1, 1, 3), (8, 8, 1), (17, 23, 3), (50, 61, 1), (64, 48, 3)])
@pytest.mark.parametrize("quality", [100, 95, 50, 10])
@pytest.mark.parametrize("halves", [True, False])
def test_a_jpeg_is_as_near_to_the_pixels_as_libjpegs(shape, quality, halves):
    pixels = _picture(*shape)
    made = tf.io.encode_jpeg(pixels, quality=quality, chroma_downsampling=halves).numpy()
    theirs = io.BytesIO()
    plain = pixels if shape[2] == 3 else pixels[..., 0]
    PIL.Image.fromarray(plain).save(theirs, "JPEG", quality=quality, subsampling=2 if halves else 0)

    def error(data):
        return np.abs(np.asarray(PIL.Image.open(io.BytesIO(data))).astype(int) - plain).mean()

    assert PIL.Image.open(io.BytesIO(made)).info["dpi"] == (300, 300)
    assert error(made) <= error(theirs.getvalue()) * 1.1 + 0.3
    assert tf.io.decode_jpeg(made).shape == shape


def test_any_pixels_can_be_written_at_any_quality():
    noise = np.random.default_rng(2).integers(0, 2, (40, 40, 3), dtype=np.uint8) * 255
    for quality in (0, 1, 100):
        made = tf.io.encode_jpeg(noise, quality=quality, chroma_downsampling=False).numpy()
        found = np.asarray(PIL.Image.open(io.BytesIO(made))).astype(int)
        assert np.abs(found - noise).mean() < (2 if quality == 100 else 130)


def test_jpegs_are_written_in_datasets():
    pictures = tf.data.Dataset.from_tensor_slices(np.stack([_picture(16, 24, 3)] * 3))
    files = pictures.map(tf.io.encode_jpeg)
    assert files.element_spec == tf.TensorSpec([], tf.string)
    assert [bool(tf.io.is_jpeg(file)) for file in files] == [True] * 3


def test_what_no_jpeg_can_be_made_of_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="uint8 is needed"):
        tf.io.encode_jpeg(tf.zeros([4, 4, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"1 or 3 channels.*\(4, 4, 2\)"):
        tf.io.encode_jpeg(tf.zeros([4, 4, 2], tf.uint8))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"3 channels"):
        tf.image.encode_jpeg(tf.zeros([4, 4, 1], tf.uint8), format="rgb")
    with pytest.raises(tf.errors.InvalidArgumentError, match="quality"):
        tf.io.encode_jpeg(tf.zeros([4, 4, 1], tf.uint8), quality=101)
    with pytest.raises(tf.errors.InvalidArgumentError, match="1 to 65500 pixels a side, not 0 x 4"):
        tf.io.encode_jpeg(tf.zeros([0, 4, 1], tf.uint8)).numpy()
    with pytest.raises(tf.errors.InvalidArgumentError, match="densities"):
        tf.io.encode_jpeg(tf.zeros([4, 4, 1], tf.uint8), x_density=0).numpy()


def test_jpegs_are_written_as_asked_for():
    pixels = _picture(64, 48, 3)
    plain = tf.io.encode_jpeg(pixels).numpy()
    small = tf.io.encode_jpeg(pixels, optimize_size=True).numpy()
    assert len(small) < len(plain)
    assert (np.asarray(PIL.Image.open(io.BytesIO(small))) ==
            np.asarray(PIL.Image.open(io.BytesIO(plain)))).all()  # fmt: skip
    assert PIL.Image.open(io.BytesIO(tf.io.encode_jpeg(pixels, progressive=True).numpy())).info[
        "progressive"
    ]
    picture = PIL.Image.open(io.BytesIO(tf.io.encode_jpeg(
        pixels, density_unit="cm", x_density=10, y_density=20, xmp_metadata="<x/>").numpy()))
    assert picture.info["jfif_unit"] == 2 and picture.info["jfif_density"] == (10, 20)
    assert (
        "APP1", b"http://ns.adobe.com/xap/1.0/\0<x/>") in picture.applist
