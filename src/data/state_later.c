/* SPDX-License-Identifier: Apache-2.0 */
/* What state.h says of elements and stages, until it is there. */
#include <errno.h>

#include "data/state.h"

__attribute__((weak)) int pl_save_element(pl_saver *saver, const pl_element *element,
                                          pl_error *reterr)
{
    (void)saver, (void)element;
    return pl_error_set(reterr, -ENOTSUP, "elements are not saved yet");
}

__attribute__((weak)) int pl_save_stage(pl_saver *saver, pl_stage *stage, pl_error *reterr)
{
    (void)saver, (void)stage;
    return pl_error_set(reterr, -ENOTSUP, "stages are not saved yet");
}

__attribute__((weak)) int pl_load_element(pl_loader *loader, const pl_dataset *dataset,
                                          pl_element *ret_element, pl_error *reterr)
{
    (void)loader, (void)dataset, (void)ret_element;
    return pl_error_set(reterr, -ENOTSUP, "elements are not loaded yet");
}

__attribute__((weak)) int pl_load_stage(pl_loader *loader, pl_stage *stage, pl_error *reterr)
{
    (void)loader, (void)stage;
    return pl_error_set(reterr, -ENOTSUP, "stages are not loaded yet");
}
