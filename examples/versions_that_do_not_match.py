# SPDX-License-Identifier: Apache-2.0
"""Cause: packages, drivers and processors that do not go together.

What is installed is looked at before it is loaded: `plimsoll doctor` has a verdict on it.
"""

import json
import subprocess
import sys

import plimsoll.tf as tf

print("TensorFlow's names, by Plimsoll:", tf.__version__)
print("Python:", sys.version.split()[0])

command = [sys.executable, "-m", "plimsoll", "doctor", "--json", "--python", sys.executable]
found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
for finding in found["findings"]:
    if finding["verdict"] != "ok":
        print(f"{finding['verdict']}: {finding['says']}")

a = tf.constant([1, 2, 3])
b = tf.constant([4, 5, 6])
with tf.compat.v1.Session() as session:
    print("Result:", session.run(a + b))
