# SPDX-License-Identifier: Apache-2.0
"""Datasets made from other datasets, and the functions of users that they call."""
