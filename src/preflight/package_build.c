/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a framework was built with from its own texts: torch/version.py and
 * tensorflow/python/platform/build_info.py. They are read, not run. */
#include <stdlib.h>
#include <string.h>

#include "preflight/packages.h"
#include "preflight/sysroot.h"
#include "preflight/version.h"

enum { SOURCE_BYTES = 16384 };

/* Takes the text between the next two quotes on the line; false if there are none. */
static bool take_quoted(const char *text, char *value, size_t n)
{
    size_t end = strcspn(text, "\n"), start = strcspn(text, "'\"\n");
    if (start >= end)
        return false;
    const char *close = memchr(text + start + 1, text[start], end - start - 1);
    return close != NULL &&
           pl_format(value, n, "%.*s", (int)(close - text) - (int)start - 1, text + start + 1);
}

static void read_source(const char *root, pl_package *package, const char *name,
                        void (*parse)(const char *text, pl_package *package))
{
    char path[PATH_MAX], *text = NULL;
    if (!pl_format(path, sizeof path, "%s/%s", package->site, name) ||
        pl_sysroot_read(root, path, SOURCE_BYTES, &text) < 0)
        return;
    parse(text, package);
    free(text);
}

/* Matches "cuda: Optional[str] = '12.6'" or "cuda = None" at the start of a line. */
void pl_package_parse_torch(const char *text, pl_package *package)
{
    const char *line = text;
    while (line != NULL && strncmp(line, "cuda", 4) != 0) {
        const char *end = strchr(line, '\n');
        line = end != NULL ? end + 1 : NULL;
    }
    const char *value = line != NULL ? strchr(line, '=') : NULL;
    if (value != NULL && value < line + strcspn(line, "\n") &&
        !take_quoted(value, package->cuda, sizeof package->cuda))
        strcpy(package->cuda, "none");
}

/* Takes the words between the brackets: ('cuda_compute_capabilities', ['sm_60', 'compute_90']). */
static void read_compute(const char *text, pl_package *package)
{
    const char *from = strchr(text, '['), *to = from != NULL ? strchr(from, ']') : NULL;
    size_t used = 0;
    for (; from != NULL && to != NULL && from < to; from++) {
        bool kept =
            *from == '_' || (*from >= 'a' && *from <= 'z') || (*from >= '0' && *from <= '9');
        bool ends = !kept && used > 0 && package->compute[used - 1] != ' ';
        if ((kept || ends) && used + 1 < sizeof package->compute)
            package->compute[used++] = kept ? *from : ' ';
    }
    package->compute[used] = '\0';
}

/* Finds ('cuda_version', '12.5.1') among others, in any order. */
void pl_package_parse_tensorflow(const char *text, pl_package *package)
{
    static const char version[] = "cuda_version'", compute[] = "cuda_compute_capabilities'";
    const char *found = strstr(text, version);
    if (found != NULL)
        take_quoted(found + strlen(version), package->cuda, sizeof package->cuda);
    else if (strstr(text, "is_cuda_build', False") != NULL)
        strcpy(package->cuda, "none");
    found = strstr(text, compute);
    if (found != NULL)
        read_compute(found + strlen(compute), package);
}

/* A local version states it too: "2.7.0+cu126", "2.7.0+cpu". */
static void read_local_version(pl_package *package)
{
    pl_version version;
    if (pl_version_parse(package->version, &version) < 0)
        return;
    const char *local = version.local;
    size_t n = strncmp(local, "cu", 2) == 0 ? strspn(local + 2, "0123456789") : 0;
    if (strncmp(local, "cpu", 3) == 0)
        strcpy(package->cuda, "none");
    else if (n >= 2)
        pl_format(package->cuda, sizeof package->cuda, "%.*s.%c", (int)n - 1, local + 2,
                  local[2 + n - 1]);
}

void pl_package_read_build(const char *root, pl_package *package)
{
    static const char *const tensorflows[] = {"tensorflow", "tensorflow-cpu", "tensorflow-gpu",
                                              "tf-nightly", "tf-nightly-cpu"};
    if (strcmp(package->name, "torch") == 0)
        read_source(root, package, "torch/version.py", pl_package_parse_torch);
    for (size_t i = 0; i < PL_COUNT_OF(tensorflows); i++)
        if (strcmp(package->name, tensorflows[i]) == 0)
            read_source(root, package, "tensorflow/python/platform/build_info.py",
                        pl_package_parse_tensorflow);
    if (package->cuda[0] == '\0' && strcmp(package->name, "torch") == 0)
        read_local_version(package);
}
