# SPDX-License-Identifier: Apache-2.0
"""What users hold: dtypes, shapes, tensors, variables, and what converts other values to them."""
