# SPDX-License-Identifier: Apache-2.0
"""tf.bitwise: bit by bit."""
from plimsoll.tf import _not_implemented
from plimsoll.tf._ops.elementwise import binary, unary

__all__ = [
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift",
]

__getattr__ = _not_implemented.getter("tf.bitwise")

bitwise_and = binary("bitwise_and", "bitwise_and", "Bits that both have.",
                     "bitwise.bitwise_and([6], [3]) => [2]", __name__)
bitwise_or = binary("bitwise_or", "bitwise_or", "Bits that either has.",
                    "bitwise.bitwise_or([6], [3]) => [7]", __name__)
bitwise_xor = binary("bitwise_xor", "bitwise_xor", "Bits that one of them has.",
                     "bitwise.bitwise_xor([6], [3]) => [5]", __name__)
invert = unary("invert", "bitwise_not", "Every bit the other way.", "bitwise.invert([0]) => [-1]",
               __name__)
left_shift = binary("left_shift", "left_shift", "Bits of x, y places up.",
                    "bitwise.left_shift([1], [3]) => [8]", __name__)
right_shift = binary("right_shift", "right_shift", "Bits of x, y places down; the sign stays.",
                     "bitwise.right_shift([-8], [1]) => [-4]", __name__)
