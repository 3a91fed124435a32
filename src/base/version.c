/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library that runs, which may differ from that of the headers. */
#include "plimsoll/version.h"

int pl_version(void)
{
    return PLIMSOLL_VERSION;
}

const char *pl_version_text(void)
{
    return PL_VERSION;
}
