# SPDX-License-Identifier: Apache-2.0
"""Pictures: values against PIL and NumPy, dtypes and errors as TensorFlow documents."""
import numpy as np
import PIL.Image
import pytest

import plimsoll.tf as tf
from plimsoll.tf import errors
from test_array import same, traced

RNG = np.random.default_rng(3)
PICTURE = RNG.integers(0, 256, (7, 5, 3), dtype=np.uint8)
REAL = RNG.uniform(0, 1, (6, 8, 3)).astype(np.float32)
SEVERAL = RNG.uniform(0, 1, (2, 6, 8, 3)).astype(np.float32)


# ---- resized ----


def test_resize_gives_float32():
    out = tf.image.resize(PICTURE, [14, 10])
    assert out.dtype == tf.float32 and out.shape.as_list() == [14, 10, 3]
    assert tf.image.resize(PICTURE, [14, 10], "nearest").dtype == tf.uint8
    assert tf.image.resize(PICTURE, [7, 5]).dtype == tf.float32
    assert tf.image.resize(SEVERAL, tf.constant([3, 4])).shape.as_list() == [2, 3, 4, 3]


def test_bilinear_is_half_pixel_centred():
    out = tf.image.resize([[[0.0], [4.0]]], [1, 4]).numpy().ravel()
    assert out.tolist() == [0.0, 1.0, 3.0, 4.0]


@pytest.mark.parametrize("method, pil", [("bilinear", PIL.Image.BILINEAR),
                                         ("bicubic", PIL.Image.BICUBIC),
                                         ("lanczos3", PIL.Image.LANCZOS)])
@pytest.mark.parametrize("size", [(3, 4), (12, 20), (5, 16)])
def test_antialiased_methods_are_pils(method, pil, size):
    """PIL always covers what it makes smaller. Its bicubic and Lanczos kernels are the same."""
    channel = REAL[..., 0]
    expected = np.asarray(PIL.Image.fromarray(channel).resize(size[::-1], pil))
    out = tf.image.resize(channel[..., None], size, method, antialias=True).numpy()[..., 0]
    np.testing.assert_allclose(out, expected, atol=2e-3)


def test_area_is_the_mean_of_boxes():
    out = tf.image.resize(REAL, [3, 4], "area").numpy()
    np.testing.assert_allclose(out, REAL.reshape(3, 2, 4, 2, 3).mean((1, 3)), rtol=1e-5)


@pytest.mark.parametrize("method", ["gaussian", "mitchellcubic", "lanczos5", "area", "bicubic"])
def test_every_method_keeps_what_is_even(method):
    out = tf.image.resize(tf.fill([5, 5, 2], 3.0), [9, 3], method)
    np.testing.assert_allclose(out.numpy(), np.full((9, 3, 2), 3.0), rtol=1e-5)


def test_kernels_are_their_formulas():
    """Twice as large, the weights of a pixel in the middle are the kernel's at 1/4, 3/4 ..."""
    line = np.zeros((1, 16, 1), np.float32)
    line[0, 8] = 1.0
    at = np.array([-1.75, -1.25, -0.75, -0.25, 0.25, 0.75, 1.25, 1.75])
    a = abs(at)
    mitchell = np.where(a < 1, 7 / 6 * a**3 - 2 * a**2 + 8 / 9,
                        -7 / 18 * a**3 + 2 * a**2 - 10 / 3 * a + 16 / 9)
    gauss = np.exp(-2 * a**2) * (a < 1.5)
    for method, kernel in (("mitchellcubic", mitchell), ("gaussian", gauss)):
        out = tf.image.resize(line, [1, 32], method).numpy()[0, 13:21, 0]
        other = kernel[1::2].sum() if method == "gaussian" else 1.0
        np.testing.assert_allclose(out, kernel / other, atol=1e-3)


def test_proportions_can_be_kept():
    assert tf.image.resize(REAL, [3, 100], preserve_aspect_ratio=True).shape.as_list() == [3, 4, 3]
    assert tf.image.resize(REAL, [100, 4], preserve_aspect_ratio=True).shape.as_list() == [3, 4, 3]


def test_resize_refuses():
    with pytest.raises(ValueError):
        tf.image.resize([1.0], [2, 2])
    with pytest.raises(ValueError):
        tf.image.resize(REAL, [2, 2, 2])
    with pytest.raises(ValueError):
        tf.image.resize(REAL, [2, 2], "best")
    with pytest.raises(errors.InvalidArgumentError):
        tf.image.resize(REAL, [0, 2])


def test_resize_of_sizes_that_are_not_known_yet():
    run = traced(lambda x: tf.image.resize(x, [3, 4]), (tf.float32, [None, None, 3]))
    assert run.output.shape.as_list() == [3, 4, 3]
    np.testing.assert_allclose(run(REAL), tf.image.resize(REAL, [3, 4]).numpy(), rtol=1e-6)
    run = traced(lambda x: tf.image.resize(x, [3, 4], "bicubic"), (tf.float32, [None, None, 3]))
    assert run.output.shape.as_list() == [3, 4, 3]
    np.testing.assert_allclose(run(REAL), tf.image.resize(REAL, [3, 4], "bicubic").numpy(), rtol=1e-6)
    run = traced(lambda x: tf.image.resize(x, tf.shape(x)[:2] // 2), (tf.float32, [None, None, 3]))
    assert run(REAL).shape == (3, 4, 3)


# ---- colours ----


def test_dtypes_are_converted_with_their_range():
    same(tf.image.convert_image_dtype(np.uint8([0, 255]), tf.float32), [0.0, 1.0], tf.float32)
    same(tf.image.convert_image_dtype([0.0, 1.0], tf.uint8), [0, 255], tf.uint8)
    same(tf.image.convert_image_dtype([-1.0, 2.0], tf.uint8, saturate=True), [0, 255])
    same(tf.image.convert_image_dtype(np.uint8([1]), tf.uint16), [256], tf.uint16)
    same(tf.image.convert_image_dtype(np.uint16([512]), tf.uint8), [2], tf.uint8)
    x = tf.constant(PICTURE)
    back = tf.image.convert_image_dtype(tf.image.convert_image_dtype(x, tf.float32), tf.uint8)
    same(back, PICTURE)


def test_grey():
    grey = tf.image.rgb_to_grayscale(REAL)
    np.testing.assert_allclose(grey.numpy(), (REAL @ np.float32([0.2989, 0.587, 0.114]))[..., None],
                               rtol=1e-5)
    assert tf.image.rgb_to_grayscale(PICTURE).dtype == tf.uint8
    same(tf.image.grayscale_to_rgb(np.ones((1, 2, 1))), np.ones((1, 2, 3)))
    with pytest.raises(ValueError):
        tf.image.grayscale_to_rgb(REAL)


def test_brightness_and_contrast():
    np.testing.assert_allclose(tf.image.adjust_brightness(REAL, 0.25).numpy(), REAL + 0.25, rtol=1e-6)
    out = tf.image.adjust_brightness(PICTURE, 0.1)
    assert out.dtype == tf.uint8
    np.testing.assert_allclose(out.numpy(), np.minimum(PICTURE + 25.5, 255), atol=1)
    mean = REAL.mean((0, 1))
    np.testing.assert_allclose(tf.image.adjust_contrast(REAL, 2.0).numpy(), (REAL - mean) * 2 + mean,
                               rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tf.image.adjust_gamma(REAL, 2.0).numpy(), REAL ** 2, rtol=1e-5)


def test_hue_saturation_and_value():
    import colorsys

    hsv = tf.image.rgb_to_hsv(REAL).numpy()
    for place in np.ndindex(6, 8):
        np.testing.assert_allclose(hsv[place], colorsys.rgb_to_hsv(*REAL[place]), atol=1e-5)
    np.testing.assert_allclose(tf.image.hsv_to_rgb(hsv).numpy(), REAL, atol=1e-5)
    grey = tf.image.adjust_saturation(REAL, 0.0).numpy()
    np.testing.assert_allclose(grey, np.repeat(REAL.max(-1, keepdims=True), 3, -1), atol=1e-5)
    np.testing.assert_allclose(tf.image.adjust_hue(tf.image.adjust_hue(REAL, 0.3), -0.3).numpy(), REAL,
                               atol=1e-4)


def test_standardization():
    out = tf.image.per_image_standardization(SEVERAL).numpy()
    np.testing.assert_allclose(out.mean((1, 2, 3)), [0, 0], atol=1e-5)
    np.testing.assert_allclose(out.std((1, 2, 3)), [1, 1], rtol=1e-4)
    assert tf.image.per_image_standardization(PICTURE).dtype == tf.float32
    same(tf.image.per_image_standardization(np.full((2, 2, 1), 7.0, np.float32)), np.zeros((2, 2, 1)))
    run = traced(tf.image.per_image_standardization, (tf.float32, [None, None, 3]))
    np.testing.assert_allclose(run(SEVERAL[0]), out[0], rtol=1e-4, atol=1e-5)


# ---- turned ----


def test_flips_and_turns():
    same(tf.image.flip_left_right(PICTURE), PICTURE[:, ::-1], tf.uint8)
    same(tf.image.flip_up_down(SEVERAL), SEVERAL[:, ::-1])
    same(tf.image.transpose(PICTURE), PICTURE.swapaxes(0, 1))
    for k in range(5):
        same(tf.image.rot90(PICTURE, k), np.rot90(PICTURE, k))
        same(tf.image.rot90(SEVERAL, k), np.rot90(SEVERAL, k, (1, 2)))
    with pytest.raises(ValueError):
        tf.image.flip_left_right([1, 2])


def test_random_flips_are_both():
    x = np.float32([[[1], [2]]])
    seen = {tuple(tf.image.random_flip_left_right(x, seed=i).numpy().ravel()) for i in range(20)}
    assert seen == {(1, 2), (2, 1)}
    many = tf.image.random_flip_left_right(np.broadcast_to(x, (50, 1, 2, 1))).numpy().reshape(50, 2)
    assert {tuple(row) for row in many.tolist()} == {(1, 2), (2, 1)}
    a, b = (tf.image.stateless_random_flip_up_down(PICTURE, [3, 4]).numpy() for _ in range(2))
    assert (a == b).all()
    run = traced(tf.image.random_flip_left_right, (tf.float32, [None, 1, 2, 1]))
    assert run(np.broadcast_to(x, (5, 1, 2, 1))).shape == (5, 1, 2, 1)


# ---- cut and padded ----


def test_boxes():
    same(tf.image.crop_to_bounding_box(PICTURE, 1, 2, 3, 2), PICTURE[1:4, 2:4])
    same(tf.image.crop_to_bounding_box(SEVERAL, 0, 1, 6, 2), SEVERAL[:, :, 1:3])
    same(tf.image.pad_to_bounding_box(PICTURE, 1, 2, 10, 9),
         np.pad(PICTURE, [(1, 2), (2, 2), (0, 0)]))
    with pytest.raises(ValueError):
        tf.image.crop_to_bounding_box(PICTURE, 5, 0, 3, 2)
    with pytest.raises(ValueError):
        tf.image.pad_to_bounding_box(PICTURE, 0, 0, 3, 3)
    run = traced(lambda x: tf.image.crop_to_bounding_box(x, 1, 2, 3, 2), (tf.uint8, [None, None, 3]))
    assert run.output.shape.as_list() == [3, 2, 3]
    same(tf.constant(run(PICTURE)), PICTURE[1:4, 2:4])


def test_central_crop():
    same(tf.image.central_crop(REAL, 0.5), REAL[1:5, 2:6])
    same(tf.image.central_crop(REAL, 1.0), REAL)
    run = traced(lambda x: tf.image.central_crop(x, 0.5), (tf.float32, [6, None, 3]))
    np.testing.assert_array_equal(run(REAL), REAL[1:5, 2:6])
    with pytest.raises(ValueError):
        tf.image.central_crop(REAL, 0.0)


def test_crop_or_pad():
    same(tf.image.resize_with_crop_or_pad(REAL, 4, 10), np.pad(REAL[1:5], [(0, 0), (1, 1), (0, 0)]))
    run = traced(lambda x: tf.image.resize_with_crop_or_pad(x, 4, 10), (tf.float32, [None, None, 3]))
    assert run.output.shape.as_list() == [4, 10, 3]
    np.testing.assert_array_equal(run(REAL), np.pad(REAL[1:5], [(0, 0), (1, 1), (0, 0)]))
    out = tf.image.resize_with_pad(REAL, 6, 4).numpy()
    assert out.shape == (6, 4, 3) and (out[0] == 0).all() and (out[1:4] > 0).any()


def test_random_crops():
    x = np.arange(100).reshape(10, 10)
    corners = set()
    for i in range(30):
        box = tf.image.random_crop(x, [3, 4], seed=i).numpy()
        corner = divmod(int(box[0, 0]), 10)
        corners.add(corner)
        assert (box == x[corner[0]:corner[0] + 3, corner[1]:corner[1] + 4]).all()
    assert len(corners) > 10
    run = traced(lambda p: tf.image.random_crop(p, [3, 4]), (tf.int64, [10, 10]))
    box = run(x)
    assert box.shape == (3, 4) and (np.diff(box) == 1).all()
    run = traced(lambda p: tf.image.random_crop(p, [3, 4]), (tf.int64, [None, None]))
    assert run(x).shape == (3, 4)
    a, b = (tf.image.stateless_random_crop(x, [3, 4], [1, 2]).numpy() for _ in range(2))
    assert (a == b).all()
    with pytest.raises(errors.InvalidArgumentError):
        tf.image.random_crop(x, [11, 1])


def test_changes_by_chance_stay_within_their_limits():
    for i in range(5):
        change = tf.image.random_brightness(REAL, 0.3, seed=i).numpy() - REAL
        assert np.ptp(change) < 1e-5 and abs(change).max() <= 0.3 + 1e-6
        factor = (tf.image.random_contrast(REAL, 0.5, 1.5, seed=i).numpy() - REAL.mean((0, 1))) / (
            REAL - REAL.mean((0, 1)))
        assert 0.499 <= np.median(factor) <= 1.501
    with pytest.raises(ValueError):
        tf.image.random_brightness(REAL, -1)
    with pytest.raises(ValueError):
        tf.image.random_contrast(REAL, 1.5, 0.5)


def test_measures():
    np.testing.assert_allclose(tf.image.total_variation(REAL).numpy(),
                               abs(np.diff(REAL, axis=0)).sum() + abs(np.diff(REAL, axis=1)).sum(),
                               rtol=1e-5)
    error = ((REAL - SEVERAL[0]) ** 2).mean()
    np.testing.assert_allclose(tf.image.psnr(REAL, SEVERAL[0], 1.0).numpy(), -10 * np.log10(error),
                               rtol=1e-5)


def test_boxes_and_turns_that_only_the_run_tells():
    def middle(x):
        height, width = tf.shape(x)[0], tf.shape(x)[1]
        size = tf.minimum(height, width)
        return tf.image.crop_to_bounding_box(x, (height - size) // 2, (width - size) // 2, size, size)

    run = traced(middle, (tf.uint8, [None, None, 3]))
    assert run.output.shape.as_list() == [None, None, 3]
    np.testing.assert_array_equal(run(PICTURE), PICTURE[1:6])
    run = traced(lambda x, k: tf.image.rot90(x, k), (tf.uint8, [None, None, 3]), (tf.int32, []))
    np.testing.assert_array_equal(run(PICTURE, np.int32(3)), np.rot90(PICTURE, 3))
    run = traced(lambda x, n: tf.image.resize_with_crop_or_pad(x, n, 5), (tf.uint8, [None, None, 3]),
                 (tf.int32, []))
    np.testing.assert_array_equal(run(PICTURE, np.int32(5)), PICTURE[1:6])
    run = traced(lambda x, n: tf.image.pad_to_bounding_box(x, 0, 0, n, 5), (tf.uint8, [7, 5, 3]),
                 (tf.int32, []))
    np.testing.assert_array_equal(run(PICTURE, np.int32(8)), np.pad(PICTURE, [(0, 1), (0, 0), (0, 0)]))
