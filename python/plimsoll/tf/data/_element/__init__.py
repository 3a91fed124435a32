# SPDX-License-Identifier: Apache-2.0
"""The layout of an element: its structure, the specs of its components, the file for both."""
