# SPDX-License-Identifier: Apache-2.0
"""Activations, losses and normalisation against their formulas in NumPy."""
import math

import numpy as np
import pytest

import plimsoll.tf as tf
from plimsoll.tf import errors
from test_array import same, traced

RNG = np.random.default_rng(2)
X = RNG.normal(0, 3, (3, 5)).astype(np.float32)
erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.05070098 * np.where(x > 0, x, 1.67326324 * np.expm1(x)),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "silu": lambda x: x * sigmoid(x), "swish": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.log1p(np.exp(x)), "softsign": lambda x: x / (np.abs(x) + 1),
    "sigmoid": sigmoid, "tanh": np.tanh, "softmax": softmax,
    "log_softmax": lambda x: np.log(softmax(x)),
    "crelu": lambda x: np.maximum(np.concatenate([x, -x], -1), 0),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_formulas(name):
    out = getattr(tf.nn, name)(X)
    np.testing.assert_allclose(out.numpy(), ACTIVATIONS[name](X), rtol=1e-5, atol=1e-6)
    assert out.dtype == tf.float32


def test_options_of_activations():
    np.testing.assert_allclose(tf.nn.leaky_relu(X, alpha=0.5).numpy(), np.where(X > 0, X, X / 2))
    same(tf.nn.leaky_relu([-10]), [-2.0], tf.float32)
    np.testing.assert_allclose(tf.nn.gelu(X, approximate=True).numpy(), ACTIVATIONS["gelu"](X),
                               atol=2e-3)
    np.testing.assert_allclose(tf.nn.softmax(X, axis=0).numpy(), softmax(X.T).T, rtol=1e-5)
    same(tf.nn.relu([-1, 2]), [0, 2], tf.int32)


def test_large_numbers_do_not_overflow():
    same(tf.nn.softplus([-1000.0, 1000.0]), [0.0, 1000.0])
    same(tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0, 0.0], logits=[1000.0, -1000.0]), [0, 0.0])
    same(tf.nn.log_softmax([1000.0, 0.0]), [0.0, -1000.0])


def test_cross_entropies():
    labels = softmax(RNG.normal(size=(3, 5)).astype(np.float32))
    np.testing.assert_allclose(
        tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=X).numpy(),
        -(labels * np.log(softmax(X))).sum(-1), rtol=1e-5)
    z = (labels > 0.2).astype(np.float32)
    expected = -z * np.log(sigmoid(X)) - (1 - z) * np.log(1 - sigmoid(X))
    np.testing.assert_allclose(tf.nn.sigmoid_cross_entropy_with_logits(z, X).numpy(), expected,
                               rtol=1e-4, atol=1e-5)
    expected = -2 * z * np.log(sigmoid(X)) - (1 - z) * np.log(1 - sigmoid(X))
    np.testing.assert_allclose(tf.nn.weighted_cross_entropy_with_logits(z, X, 2.0).numpy(), expected,
                               rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError):
        tf.nn.sigmoid_cross_entropy_with_logits([1.0, 0.0], [1.0])


def test_cross_entropy_of_single_classes():
    expected = -np.log(softmax(X))[np.arange(3), [4, 0, 2]]
    out = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[4, 0, 2], logits=X)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)
    run = traced(lambda labels, logits: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits),
                 (tf.int32, [None]), (tf.float32, [None, 5]))
    np.testing.assert_allclose(run(np.int32([4, 0, 2]), X), expected, rtol=1e-5)
    deep = tf.nn.sparse_softmax_cross_entropy_with_logits([[4], [0], [2]], X[:, None])
    np.testing.assert_allclose(deep.numpy(), expected[:, None], rtol=1e-5)
    single = tf.nn.sparse_softmax_cross_entropy_with_logits(4, X[0])
    np.testing.assert_allclose(single.numpy(), expected[0], rtol=1e-5)


def test_a_label_that_is_no_class_is_refused():
    for label in (5, -1):
        with pytest.raises(errors.InvalidArgumentError):
            tf.nn.sparse_softmax_cross_entropy_with_logits([0, 0, label], X).numpy()
    with pytest.raises(ValueError):
        tf.nn.sparse_softmax_cross_entropy_with_logits([[0]], X)
    with pytest.raises(NotImplementedError):
        traced(tf.nn.sparse_softmax_cross_entropy_with_logits, (tf.int32, [None]),
               (tf.float32, [None, None]))


def test_normalisation():
    np.testing.assert_allclose(tf.nn.l2_normalize(X, 1).numpy(),
                               X / np.linalg.norm(X, axis=1, keepdims=True), rtol=1e-5)
    mean, variance = tf.nn.moments(X, [0])
    np.testing.assert_allclose(mean.numpy(), X.mean(0), rtol=1e-5)
    np.testing.assert_allclose(variance.numpy(), X.var(0), rtol=1e-5)
    out = tf.nn.batch_normalization(X, mean, variance, 1.0, 2.0, 1e-3)
    np.testing.assert_allclose(out.numpy(), (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-3) * 2 + 1,
                               rtol=1e-4, atol=1e-4)
    part, norm = tf.linalg.normalize([3.0, 4.0])
    np.testing.assert_allclose(part.numpy(), [0.6, 0.8], rtol=1e-6)
    same(tf.nn.l2_loss([3.0, 4.0]), 12.5)
    same(tf.nn.zero_fraction([0, 1, 0, 2]), 0.5, tf.float32)


def test_bias_add():
    same(tf.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]), [[11.0, 22.0]])
    same(tf.nn.bias_add(np.zeros((1, 2, 2)), [1.0, 2.0], "NC..."), [[[1, 1], [2, 2]]], tf.float64)
    with pytest.raises(errors.InvalidArgumentError):
        tf.nn.bias_add([[1.0, 2.0]], [1.0])
    with pytest.raises(ValueError):
        tf.nn.bias_add([[1.0]], [1.0], "XYZ")


def test_dropout_keeps_the_mean():
    x = tf.ones([1000, 10])
    out = tf.nn.dropout(x, rate=0.25, seed=1).numpy()
    assert set(np.unique(out.round(4))) == {0.0, np.float32(1.3333)}
    assert abs(out.mean() - 1) < 0.05
    same(tf.nn.dropout([1.0, 2.0], 0.0), [1.0, 2.0])
    rows = tf.nn.dropout(x, rate=0.5, noise_shape=[1000, 1]).numpy()
    assert (rows == rows[:, :1]).all()
    run = traced(lambda x: tf.nn.dropout(x, 0.5), (tf.float32, [None, 4]))
    assert run(np.ones((3, 4), np.float32)).shape == (3, 4)
    with pytest.raises(ValueError):
        tf.nn.dropout([1.0], rate=1.5)
    with pytest.raises(ValueError):
        tf.nn.dropout(tf.constant([1]), rate=0.5)


def test_embedding_lookup():
    same(tf.nn.embedding_lookup([[1.0, 2.0], [3.0, 4.0]], [[1], [0]]), [[[3.0, 4.0]], [[1.0, 2.0]]])


def test_dropout_is_for_floating_point_numbers():
    with pytest.raises(ValueError, match="floating point"):
        tf.nn.dropout([1, 2], 0.5)


def test_relu_takes_features():
    same(tf.nn.relu(features=[-1, 2]), [0, 2], tf.int32)
