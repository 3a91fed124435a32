# SPDX-License-Identifier: Apache-2.0
"""How computations are recorded and run: graphs, traced functions, control flow, sessions."""
