# SPDX-License-Identifier: Apache-2.0
"""The user's objects: dtypes, shapes, tensors, variables, and conversions to them."""
