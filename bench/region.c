/* SPDX-License-Identifier: Apache-2.0 */
/* The marks as client requests of valgrind; a library, so that Python workloads call it too. */
#include "region.h"

#include <valgrind/callgrind.h>

void region_begin(void)
{
    CALLGRIND_START_INSTRUMENTATION;
}

void region_end(void)
{
    CALLGRIND_STOP_INSTRUMENTATION;
}
