// SPDX-License-Identifier: Apache-2.0
// Allocates 400 blocks of 2 MiB and keeps the last eight: without its collector it needs 800 MiB.
package main

import "fmt"

func main() {
	kept := make([][]byte, 8)
	n := 0
	for i := 0; i < 400; i++ {
		block := make([]byte, 2<<20)
		for j := 0; j < len(block); j += 4096 {
			block[j] = byte(i)
		}
		kept[i%len(kept)] = block
		n++
	}
	if kept[7][4096] != byte(399%256) {
		panic("the last block is not what was written")
	}
	fmt.Println(n, "blocks")
}
