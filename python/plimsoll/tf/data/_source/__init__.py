# SPDX-License-Identifier: Apache-2.0
"""Datasets made from tensors, files, generators and placeholders."""
