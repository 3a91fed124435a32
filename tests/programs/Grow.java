// SPDX-License-Identifier: Apache-2.0
/** Allocates 400 blocks of 2 MiB and keeps the last eight: without its collector it needs 800 MiB. */
class Grow {
    public static void main(String[] arguments) {
        byte[][] kept = new byte[8][];
        int n = 0;
        for (int i = 0; i < 400; i++) {
            byte[] block = new byte[2 << 20];
            java.util.Arrays.fill(block, (byte) i);
            kept[i % kept.length] = block;
            n++;
        }
        if (kept[7][4096] != (byte) 399) {
            throw new IllegalStateException("the last block is not what was written");
        }
        System.out.println(n + " blocks");
    }
}
