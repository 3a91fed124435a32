/* SPDX-License-Identifier: Apache-2.0 */
/* What tests ask of the build that they are in.
 *   SANITIZED   1 in the builds with ASan or TSan, which are up to twenty times slower: for sizes
 *               and times of cases that prove the same with less
 *   UNWATCHED   before a function of the test's own that has long loops over memory that is the
 *               test's alone (what results are compared with, what inputs are filled with):
 *               sanitizers and the coverage for libFuzzer look at the code, not at these. Most of some
 *               tests' time went there
 *   unwatched_clone()  clone(), by glibc's other name for it. libtsan replaces the first, and leaves
 *               the function that the child is to call on the parent's stack, which the parent has
 *               gone on with by then: without CLONE_VFORK one child in 15 called something else */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#if defined(__clang__)
#define UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined", "coverage")))
#else
#define UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

#define unwatched_clone __clone
extern int __clone(int (*run)(void *), void *stack, int flags, void *argument, ...);

#endif
