# SPDX-License-Identifier: Apache-2.0
"""What an element looks like: its structure, the specs of its components, the file that keeps both."""
