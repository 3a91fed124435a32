/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGABRT: std::terminate(), because nobody catches the exception. */
#include <stdexcept>

void load_shape();

__attribute__((noinline)) void load_shape()
{
    throw std::runtime_error("the tensor has no shape");
}

int main()
{
    load_shape();
    return 0;
}
