/* SPDX-License-Identifier: Apache-2.0 */
/* Least squares over the part from the last point at the foot to the first at the top, with
 * conditions that exclude everything but a steady rise. */
#include "report/leak.h"

/* Fewer points fit a line by accident. A program that fills a few GiB as fast as it can is done in
 * 2 s, and leaks nothing. */
enum { MIN_POINTS = 10 };
static const double min_over_s = 2.0;

/* The rise must matter: at least a quarter of the line, and up to it. */
static const double min_rise_of_limit = 0.25;
static const double min_top_of_limit = 0.90;

/* A leak that pauses for garbage collections and epochs stays above 0.9; steps do not. */
static const double min_r_squared = 0.90;

/* One step with more than this share of the rise is one allocation, not a leak. */
static const double max_jump_of_rise = 0.40;

/* Giving back more than this share is work that comes and goes. */
static const double max_drop_of_rise = 0.10;

/* A program starts flat, and is held at the line for a while before it ends. These shares of the
 * rise still count as its foot, and already as its top. */
static const double foot_of_rise = 0.05;
static const double top_of_rise = 0.98;

struct rise {
    const pl_leak_point *points;
    size_t n;
    double bytes; /* from the first to the last point */
};

static struct rise find_rise(const pl_leak_point *points, size_t n)
{
    uint64_t top = 0, foot = UINT64_MAX;
    size_t at_top = 0;
    for (size_t i = 0; i < n; i++)
        if (points[i].bytes > top) {
            top = points[i].bytes;
            at_top = i;
        }
    for (size_t i = 0; i <= at_top && i < n; i++)
        foot = pl_min_u64(foot, points[i].bytes);

    double height = top > foot ? (double)(top - foot) : 0;
    size_t first = 0, last = at_top;
    for (size_t i = 0; i < at_top; i++)
        if ((double)(points[i].bytes - foot) <= height * foot_of_rise)
            first = i;
    for (size_t i = at_top; i > first; i--)
        if ((double)(points[i].bytes - foot) >= height * top_of_rise)
            last = i;
    if (n == 0 || last <= first)
        return (struct rise){0};
    return (struct rise){.points = points + first,
                         .n = last - first + 1,
                         .bytes = (double)points[last].bytes - (double)points[first].bytes};
}

static bool has_jump_or_drop(const struct rise *rise)
{
    double highest = 0;
    for (size_t i = 1; i < rise->n; i++) {
        double before = (double)rise->points[i - 1].bytes, now = (double)rise->points[i].bytes;
        highest = before > highest ? before : highest;
        if (now - before > max_jump_of_rise * rise->bytes)
            return true;
        if (highest - now > max_drop_of_rise * rise->bytes)
            return true;
    }
    return false;
}

/* Fits bytes over time; the coefficient of determination, or 0 when time stood still. */
static double fit(const struct rise *rise, double *ret_slope)
{
    double mean_t = 0, mean_b = 0, tt = 0, tb = 0, bb = 0;
    for (size_t i = 0; i < rise->n; i++) {
        mean_t += rise->points[i].time_s / (double)rise->n;
        mean_b += (double)rise->points[i].bytes / (double)rise->n;
    }
    for (size_t i = 0; i < rise->n; i++) {
        double t = rise->points[i].time_s - mean_t, b = (double)rise->points[i].bytes - mean_b;
        tt += t * t;
        tb += t * b;
        bb += b * b;
    }
    if (!(tt > 0) || !(bb > 0))
        return 0;
    *ret_slope = tb / tt;
    return tb * tb / (tt * bb);
}

pl_leak pl_leak_find(const pl_leak_point *points, size_t n, uint64_t limit_bytes)
{
    struct rise rise = find_rise(points, n);
    if (limit_bytes == 0 || rise.n < MIN_POINTS)
        return (pl_leak){0};

    const pl_leak_point *first = &rise.points[0], *last = &rise.points[rise.n - 1];
    double over_s = last->time_s - first->time_s, slope = 0;
    if (!(over_s >= min_over_s) || rise.bytes < min_rise_of_limit * (double)limit_bytes ||
        (double)last->bytes < min_top_of_limit * (double)limit_bytes || has_jump_or_drop(&rise) ||
        fit(&rise, &slope) < min_r_squared || !(slope > 0))
        return (pl_leak){0};

    return (pl_leak){.found = true,
                     .bytes_per_s = slope < 0x1p62 ? slope : 0x1p62, /* fits an integer */
                     .from_bytes = first->bytes,
                     .to_bytes = last->bytes,
                     .over_s = over_s};
}
