# SPDX-License-Identifier: Apache-2.0
"""pandas as an analysis uses it: group-by with several aggregates, a merge, a pivot, strings.
Usage: frames.py [SCALE]"""

import numpy as np
import pandas as pd

import region

FULL_ROUNDS = 20
N_ROWS = 300_000
N_KEYS = 1_000


def make_table():
    rng = np.random.default_rng(1)
    names = np.array([f"customer-{i}" for i in range(N_KEYS)], dtype=object)
    keys = rng.integers(N_KEYS, size=N_ROWS)
    return pd.DataFrame({
        "customer": names[keys],
        "month": rng.integers(1, 13, size=N_ROWS),
        "amount": rng.gamma(2.0, 50.0, size=N_ROWS),
        "items": rng.integers(1, 20, size=N_ROWS),
    })  # fmt: skip


def analyse(table):
    by_customer = table.groupby("customer").agg(
        total=("amount", "sum"), mean=("amount", "mean"), largest=("amount", "max"),
        items=("items", "sum"))  # fmt: skip
    joined = table.merge(by_customer, left_on="customer", right_index=True)
    share = joined["amount"] / joined["total"]
    by_month = table.pivot_table(index="customer", columns="month", values="amount", aggfunc="sum")
    initials = table["customer"].str.slice(0, 10).value_counts()
    return float(share.sum() + by_month.to_numpy(na_value=0.0).sum() + initials.iloc[0])


def main():
    table = make_table()
    total = 0.0
    with region.measured():
        for _ in range(max(1, round(region.scale() * FULL_ROUNDS))):
            total += analyse(table)
    print(f"{total:.7g}")


main()
