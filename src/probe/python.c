/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from _PyRuntime to interpreter, threads and frames. */
#include "probe/python.h"

#include <errno.h>
#include <unistd.h>

#include "probe/code.h"
#include "probe/offsets.h"
#include "probe/reader.h"

/* _PyInterpreterFrame.owner */
enum {
    OWNED_BY_GENERATOR = 1,
    OWNED_BY_NO_CODE = 3, /* this and above, 3.12 on: an entry from C, with no line of its own */
};

/* PyThreadState._status, 3.12 on. Only the thread itself changes it: set after it took the GIL (or,
 * in a build without one, was let in), cleared before it lets go. */
enum { STATUS_ACTIVE = 1 << 4 };

/* A reference in a frame of 3.14 on may carry tags in bits that an object's address never has. */
enum { TAG_BITS = 7 };

bool pl_python_is_free_threaded(const pl_python *python)
{
    pl_python_offsets own_offsets;
    const pl_python_offsets *offsets = pl_python_offsets_of(python, &own_offsets);
    return offsets && offsets->is_free_threaded;
}

static bool runs(const pl_python *python, const pl_python_offsets *offsets, uint64_t state)
{
    const pl_reader *reader = python->reader;
    if (offsets->runtime_current)
        return pl_view_pointer(reader, python->runtime + offsets->runtime_current) == state;
    uint32_t scratch;
    const uint8_t *status =
        pl_view(reader, state + offsets->state_status, &scratch, sizeof scratch);
    return status && pl_load_u32(status, 0) & STATUS_ACTIVE;
}

bool pl_python_runs(const pl_python *python, uint64_t state)
{
    pl_python_offsets own_offsets;
    const pl_python_offsets *offsets = pl_python_offsets_of(python, &own_offsets);
    return offsets && state != 0 && runs(python, offsets, state);
}

int pl_python_threads(const pl_python *python, pl_python_thread *threads, int max)
{
    pl_python_offsets own_offsets;
    const pl_python_offsets *offsets = pl_python_offsets_of(python, &own_offsets);
    if (!offsets)
        return -ENOTSUP;
    const pl_reader *reader = python->reader;
    uint64_t interp = pl_view_pointer(reader, python->runtime + offsets->runtime_main);
    if (interp == 0)
        return -EAGAIN;

    uint64_t state = pl_view_pointer(reader, interp + offsets->interp_threads);
    int n = 0;
    while (state != 0 && n < max) {
        uint8_t scratch[PL_PYTHON_STATE_BYTES];
        const uint8_t *view = pl_view(reader, state, scratch, sizeof(scratch));
        /* A state that does not point back is not valid: the layout differs, or it was just
         * freed. */
        if (!view || pl_load_u64(view, offsets->state_interp) != interp)
            return n > 0 ? n : PL_EFORMAT;
        threads[n++] = (pl_python_thread){
            .state = state,
            .thread_ident = pl_load_u64(view, offsets->state_ident),
            .tid = offsets->state_tid ? (pid_t)pl_load_u32(view, offsets->state_tid) : 0,
        };
        state = pl_load_u64(view, offsets->state_next);
    }
    return n;
}

/* _PyRuntime.interpreters is a lock, the first interpreter, and the main one. Up to 3.12 the lock
 * is a semaphore, which begins with its value: 0 while a thread holds it. From 3.13 on it is a
 * byte, whose lowest bit is set then. */
bool pl_python_lists_locked(const pl_python *python)
{
    enum { LOCK_BEFORE_MAIN = 16, VERSION_3_13 = 0x030d };
    pl_python_offsets own_offsets;
    const pl_python_offsets *offsets = pl_python_offsets_of(python, &own_offsets);
    if (!offsets)
        return true;
    uint64_t lock = python->runtime + offsets->runtime_main - LOCK_BEFORE_MAIN;
    bool is_byte = python->version >> 16 >= VERSION_3_13;
    if (!is_byte)
        lock = pl_view_pointer(python->reader, lock);
    uint32_t scratch;
    const uint8_t *value = lock ? pl_view(python->reader, lock, &scratch, sizeof(scratch)) : NULL;
    if (!value)
        return true;
    return is_byte ? value[0] & 1 : pl_load_u32(value, 0) == 0;
}

/* Walks from frame to frame, outwards. */
struct walk {
    const pl_reader *reader;
    pl_reader careful; /* replaces pl_reader_own where that might fault */
    const pl_python_offsets *offsets;
    uint64_t frame;     /* the next to look at */
    uint64_t code_type; /* address of the type "code", once seen */
    int n_left;         /* the remaining steps: a torn chain may be a ring */
};

/* Each frame that has a line comes with at most one that has none. */
static int walk_limit(int max)
{
    return max < INT32_MAX / 2 - 8 ? 2 * max + 8 : INT32_MAX;
}

static int walk_init(struct walk *walk, const pl_python *python, uint64_t state, int max,
                     pl_python_offsets *scratch)
{
    const pl_python_offsets *offsets = pl_python_offsets_of(python, scratch);
    if (!offsets)
        return -ENOTSUP;
    uint64_t frame = pl_view_pointer(python->reader, state + offsets->state_frame);
    if (offsets->has_cframe && frame != 0)
        frame = pl_view_pointer(python->reader, frame + offsets->cframe_frame);
    walk->reader = python->reader;
    /* A code object's array of bytecodes is replaced as threads come, and the old one is kept only
     * while a thread runs Python code that may look at it. */
    if (offsets->code_bytecodes && python->reader == &pl_reader_own &&
        !runs(python, offsets, state)) {
        walk->careful = pl_reader_process(getpid());
        walk->reader = &walk->careful;
    }
    walk->offsets = offsets;
    walk->frame = frame;
    walk->code_type = 0;
    walk->n_left = walk_limit(max);
    return 0;
}

/* Views a code object if it is one: the type of every spot's code has been checked. */
static const uint8_t *view_code(struct walk *walk, uint64_t code, void *scratch)
{
    const uint8_t *view = pl_view(walk->reader, code, scratch, walk->offsets->code_bytes);
    if (!view)
        return NULL;
    uint64_t type = pl_load_u64(view, walk->offsets->object_type);
    if (type == walk->code_type)
        return view;
    if (!pl_python_type_is(walk->reader, walk->offsets, type, "code"))
        return NULL;
    walk->code_type = type;
    return view;
}

/* f_lasti is -1 until the first instruction runs. */
static int spot_of_frame_object(struct walk *walk, const uint8_t *frame, pl_python_spot *ret_spot)
{
    const pl_python_offsets *offsets = walk->offsets;
    uint8_t scratch[PL_PYTHON_CODE_BYTES_MAX];
    uint64_t code = pl_load_u64(frame, offsets->frame_code);
    if (!view_code(walk, code, scratch))
        return PL_EFORMAT;
    int32_t lasti = (int32_t)pl_load_u32(frame, offsets->frame_instruction);
    uint64_t index = lasti < 0 ? 0 : (uint64_t)lasti;
    *ret_spot =
        (pl_python_spot){.code = code, .instruction = index * offsets->lasti_unit_bytes / 2};
    return 1;
}

/* Returns the address of the bytecode that the frame runs; 0: unknown. It is in the code object, or
 * in the copy of a thread: an array of pointers, which follow their number. */
static uint64_t bytecode_of(struct walk *walk, const uint8_t *frame, uint64_t code,
                            const uint8_t *code_view)
{
    enum { N_COPIES_MAX = 1 << 20 };
    const pl_python_offsets *offsets = walk->offsets;
    if (!offsets->code_bytecodes)
        return code + offsets->code_instructions;
    uint32_t index = pl_load_u32(frame, offsets->frame_bytecode);
    uint64_t copies = pl_load_u64(code_view, offsets->code_bytecodes);
    uint64_t scratch;
    const uint8_t *n = pl_view(walk->reader, copies, &scratch, sizeof scratch);
    if (!n || index >= pl_min_u64(pl_load_u64(n, 0), N_COPIES_MAX))
        return 0;
    return pl_view_pointer(walk->reader, copies + 8 + 8 * (uint64_t)index);
}

/* Returns 0 for a frame that Python does not show either: an entry from C, or a frame that is not
 * yet set up (before _co_firsttraceable; a generator's is set up when it is made). */
static int spot_of_interpreter_frame(struct walk *walk, const uint8_t *frame,
                                     pl_python_spot *ret_spot)
{
    const pl_python_offsets *offsets = walk->offsets;
    uint8_t owner = frame[offsets->frame_owner];
    if (owner >= OWNED_BY_NO_CODE)
        return 0;
    uint8_t scratch[PL_PYTHON_CODE_BYTES_MAX];
    uint64_t code = pl_load_u64(frame, offsets->frame_code) & ~(uint64_t)TAG_BITS;
    const uint8_t *code_view = view_code(walk, code, scratch);
    if (!code_view)
        return PL_EFORMAT;

    uint64_t first = bytecode_of(walk, frame, code, code_view);
    if (first == 0)
        return PL_EFORMAT;
    int64_t offset = (int64_t)(pl_load_u64(frame, offsets->frame_instruction) - first);
    int64_t first_traceable = (int32_t)pl_load_u32(code_view, offsets->code_first_traceable);
    if (owner != OWNED_BY_GENERATOR && offset < 2 * first_traceable && offset >= -2)
        return 0;
    if (offset < -2 || offset > INT32_MAX)
        return PL_EFORMAT;
    *ret_spot =
        (pl_python_spot){.code = code, .instruction = offset < 0 ? 0 : (uint64_t)offset / 2};
    return 1;
}

/* Returns 1 with a spot; 0 at the end of the stack; < 0 when the next frame is not valid. */
static int walk_next(struct walk *walk, pl_python_spot *ret_spot)
{
    const pl_python_offsets *offsets = walk->offsets;
    while (walk->frame != 0 && walk->n_left-- > 0) {
        uint8_t scratch[PL_PYTHON_FRAME_BYTES_MAX];
        const uint8_t *frame = pl_view(walk->reader, walk->frame, scratch, offsets->frame_bytes);
        if (!frame)
            return -EFAULT;
        walk->frame = pl_load_u64(frame, offsets->frame_previous);
        int r = offsets->has_frame_objects ? spot_of_frame_object(walk, frame, ret_spot)
                                           : spot_of_interpreter_frame(walk, frame, ret_spot);
        if (r != 0)
            return r;
    }
    return 0;
}

int pl_python_spots(const pl_python *python, uint64_t state, pl_python_spot *spots, int max)
{
    struct walk walk;
    pl_python_offsets own_offsets;
    int r = walk_init(&walk, python, state, max, &own_offsets);
    int n = 0;
    while (r >= 0 && n < max && (r = walk_next(&walk, &spots[n])) > 0)
        n++;
    return n > 0 ? n : r;
}

int pl_python_describe(const pl_python *python, const pl_python_spot *spot,
                       pl_python_frame *ret_frame)
{
    pl_python_offsets own_offsets;
    const pl_python_offsets *offsets = pl_python_offsets_of(python, &own_offsets);
    if (!offsets)
        return -ENOTSUP;
    return pl_python_code_describe(python->reader, offsets, spot->code, spot->instruction,
                                   ret_frame);
}

/* Ends at the first invalid frame: the frames beyond it are not valid either. */
int pl_python_stack(const pl_python *python, uint64_t state, pl_python_frame *frames, int max)
{
    struct walk walk;
    pl_python_offsets own_offsets;
    int r = walk_init(&walk, python, state, max, &own_offsets);
    if (r < 0)
        return r;
    int n = 0;
    while (n < max) {
        pl_python_spot spot;
        r = walk_next(&walk, &spot);
        if (r <= 0)
            break;
        r = pl_python_code_describe(walk.reader, walk.offsets, spot.code, spot.instruction,
                                    &frames[n]);
        if (r < 0)
            break;
        n++;
    }
    return n > 0 ? n : r;
}

/* True for the main interpreter, or another one whose threads point back to it. */
static bool is_interpreter(const pl_python *python, const pl_python_offsets *offsets,
                           uint64_t interp, uint64_t main)
{
    if (interp == 0 || interp == main)
        return interp != 0;
    uint64_t state = pl_view_pointer(python->reader, interp + offsets->interp_threads);
    return state && pl_view_pointer(python->reader, state + offsets->state_interp) == interp;
}

int pl_python_check(const pl_python *python, uint64_t state)
{
    pl_python_offsets own_offsets;
    const pl_python_offsets *offsets = pl_python_offsets_of(python, &own_offsets);
    if (!offsets)
        return -ENOTSUP;
    uint64_t main = pl_view_pointer(python->reader, python->runtime + offsets->runtime_main);
    if (main == 0)
        return -EAGAIN;
    uint64_t interp = pl_view_pointer(python->reader, state + offsets->state_interp);
    if (!is_interpreter(python, offsets, interp, main))
        return PL_EFORMAT;
    pl_python_spot spot;
    int r = pl_python_spots(python, state, &spot, 1);
    if (r <= 0)
        return r < 0 ? r : -EAGAIN;
    pl_python_frame frame;
    return pl_python_describe(python, &spot, &frame);
}
