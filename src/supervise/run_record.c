/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, finds, lists and removes the folders of runs. Trusts nothing in them: a folder counts as a
 * run only when its name has the form of an id, and only plain files are removed. */
#include "supervise/run_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/nearest.h"
#include "ledger/ledger.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/lost_page.h"
#include "sys/machine.h"
#include "sys/proc.h"

/* More runs than this cannot begin in one second under one pid; bounds the search for a name. */
enum { MAX_SAME_ID = 100 };

static void closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void closedirp(DIR **dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

static void freep(void *pointer)
{
    free(*(void **)pointer);
}

static int join(char path[PATH_MAX], const char *left, const char *right)
{
    int n = snprintf(path, PATH_MAX, "%s/%s", left, right);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int pl_run_record_path(const char *directory, const char *file, char path[PATH_MAX])
{
    return join(path, directory, file);
}

/* A relative $XDG_STATE_HOME is ignored, as the XDG base directory specification asks. */
static int state_directory(char path[PATH_MAX])
{
    const char *own = getenv("PLIMSOLL_STATE");
    if (own != NULL && own[0] != '\0')
        return snprintf(path, PATH_MAX, "%s", own) >= PATH_MAX ? -ENAMETOOLONG : 0;
    const char *xdg = getenv("XDG_STATE_HOME");
    if (xdg != NULL && xdg[0] == '/')
        return join(path, xdg, "plimsoll");
    const char *home = getenv("HOME");
    if (home != NULL && home[0] == '/')
        return join(path, home, ".local/state/plimsoll");
    return -ENOENT;
}

static int runs_directory(char path[PATH_MAX], pl_error *reterr)
{
    char state[PATH_MAX];
    int r = state_directory(state);
    if (r == 0)
        r = join(path, state, "runs");
    if (r == -ENOENT)
        return pl_error_set(reterr, r,
                            "no folder for records: HOME is not set; give one with --record DIR or "
                            "PLIMSOLL_STATE");
    if (r < 0)
        return pl_error_set(reterr, r, "the path of the state folder is too long");
    return 0;
}

static int cannot_write(pl_error *reterr, int r, const char *directory)
{
    return pl_error_set(reterr, r,
                        "cannot write the record folder '%s': %s; choose another with --record DIR",
                        directory, pl_error_text(r));
}

/* Fills the record from a folder that exists: absolute path, and its last part as the id. */
static int record_at(const char *directory, pl_run_record *ret_record)
{
    pl_run_record record = {0};
    if (realpath(directory, record.directory) == NULL)
        return -errno;
    const char *name = strrchr(record.directory, '/') + 1;
    snprintf(record.id, sizeof(record.id), "%.*s", PL_RECORD_ID_BYTES - 1, name);
    *ret_record = record;
    return 0;
}

static int create_listed(pl_run_record *ret_record, pl_error *reterr)
{
    char runs[PATH_MAX];
    int r = runs_directory(runs, reterr);
    if (r < 0)
        return r;
    r = pl_file_make_folders(runs, 0700);
    if (r < 0)
        return cannot_write(reterr, r, runs);

    struct tm local;
    time_t now = time(NULL);
    char id[PL_RECORD_ID_BYTES], path[PATH_MAX];
    size_t n = localtime_r(&now, &local) ? strftime(id, sizeof(id), "%Y%m%d-%H%M%S", &local) : 0;
    n += (size_t)snprintf(id + n, sizeof(id) - n, "-%d", (int)getpid());
    for (int i = 1; i < MAX_SAME_ID; i++) {
        if (i > 1)
            snprintf(id + n, sizeof(id) - n, "-%d", i);
        r = join(path, runs, id);
        if (r < 0)
            return cannot_write(reterr, r, runs);
        if (mkdir(path, 0700) == 0) {
            r = record_at(path, ret_record);
            if (r == 0)
                return 0;
            rmdir(path);
            return cannot_write(reterr, r, runs);
        }
        if (errno != EEXIST)
            return cannot_write(reterr, -errno, runs);
    }
    return cannot_write(reterr, -EEXIST, runs);
}

static int create_chosen(const char *directory, pl_run_record *ret_record, pl_error *reterr)
{
    pl_run_record record;
    char ledger[PATH_MAX];
    int r = directory[0] == '\0' ? -ENOENT : pl_file_make_folders(directory, 0700);
    if (r == 0)
        r = record_at(directory, &record);
    if (r == 0 && access(record.directory, W_OK | X_OK) < 0)
        r = -errno;
    if (r == 0)
        r = join(ledger, record.directory, PL_RECORD_LEDGER);
    if (r < 0)
        return cannot_write(reterr, r, directory);
    if (access(ledger, F_OK) == 0)
        return pl_error_set(reterr, -EEXIST,
                            "'%s' holds the record of another run: give --record an empty folder",
                            directory);
    *ret_record = record;
    return 0;
}

int pl_run_record_create(const char *directory, pl_run_record *ret_record, pl_error *reterr)
{
    return directory == NULL ? create_listed(ret_record, reterr)
                             : create_chosen(directory, ret_record, reterr);
}

/* Accepts "20261116-031522-4121", perhaps with "-2" behind. */
static bool is_id(const char *name)
{
    static const char form[] = "dddddddd-dddddd-d";
    for (size_t i = 0; i < sizeof(form) - 1; i++) {
        bool fits = form[i] == 'd' ? name[i] >= '0' && name[i] <= '9' : name[i] == form[i];
        if (!fits)
            return false;
    }
    return strlen(name) < PL_RECORD_ID_BYTES && strspn(name, "0123456789-") == strlen(name);
}

/* Reads the header of a record's ledger; < 0 when there is none that we understand. */
static int read_header(const char *directory, pl_ledger_header *ret_header)
{
    char path[PATH_MAX];
    int r = join(path, directory, PL_RECORD_LEDGER);
    if (r < 0)
        return r;
    PL_CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    ssize_t n = pread(fd, ret_header, sizeof(*ret_header), 0);
    if (n < 0)
        return -errno;
    if (n != (ssize_t)sizeof(*ret_header) || ret_header->magic != PL_LEDGER_MAGIC)
        return PL_ECORRUPT;
    return ret_header->version == PL_LEDGER_VERSION ? 0 : PL_EVERSION;
}

/* Returns when the run began; the folder's modification time if the ledger cannot be read. */
static uint64_t started_ns(const char *directory)
{
    pl_ledger_header header;
    if (read_header(directory, &header) == 0)
        return header.started_realtime_ns;
    struct stat st;
    if (stat(directory, &st) < 0)
        return 0;
    return (uint64_t)st.st_mtim.tv_sec * PL_NS_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
}

static int compare_newest_first(const void *left, const void *right)
{
    const pl_run_record *a = left, *b = right;
    if (a->started_ns != b->started_ns)
        return a->started_ns < b->started_ns ? 1 : -1;
    return strcmp(b->id, a->id);
}

typedef struct record_list {
    pl_run_record *records;
    size_t n;
    size_t n_room;
} record_list;

static int list_append(record_list *list, const char *runs, const char *id)
{
    if (list->n == list->n_room) {
        size_t n_room = list->n_room == 0 ? 16 : list->n_room * 2;
        pl_run_record *grown = reallocarray(list->records, n_room, sizeof(*grown));
        if (grown == NULL)
            return -ENOMEM;
        list->records = grown;
        list->n_room = n_room;
    }
    pl_run_record *record = &list->records[list->n];
    int r = join(record->directory, runs, id);
    if (r < 0)
        return r;
    snprintf(record->id, sizeof(record->id), "%.*s", PL_RECORD_ID_BYTES - 1, id);
    record->started_ns = started_ns(record->directory);
    list->n++;
    return 0;
}

/* Lists every folder whose name is an id, with a ledger in it or not, newest first. */
static int list_folders(record_list *list, pl_error *reterr)
{
    char runs[PATH_MAX];
    int r = runs_directory(runs, reterr);
    if (r < 0)
        return r;
    PL_CLEANUP(closedirp) DIR *dir = opendir(runs);
    if (dir == NULL && errno == ENOENT)
        return 0;
    if (dir == NULL)
        return pl_error_set(reterr, -errno, "cannot read the records in '%s': %s", runs,
                            pl_error_text(-errno));
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (!is_id(entry->d_name))
            continue;
        r = list_append(list, runs, entry->d_name);
        if (r < 0)
            return pl_error_set(reterr, r, "cannot list '%s': %s", runs, pl_error_text(r));
    }
    if (list->n > 0)
        qsort(list->records, list->n, sizeof(*list->records), compare_newest_first);
    return 0;
}

static bool has_file(const pl_run_record *record, const char *file)
{
    char path[PATH_MAX];
    return join(path, record->directory, file) == 0 && access(path, F_OK) == 0;
}

int pl_run_record_list(pl_run_record **ret_records, size_t *ret_n, pl_error *reterr)
{
    record_list list = {0};
    int r = list_folders(&list, reterr);
    if (r < 0) {
        free(list.records);
        return r;
    }
    size_t n = 0; /* a folder without a ledger is a run that is just being started */
    for (size_t i = 0; i < list.n; i++)
        if (has_file(&list.records[i], PL_RECORD_LEDGER))
            list.records[n++] = list.records[i];
    *ret_records = list.records;
    *ret_n = n;
    return 0;
}

/* Returns 0 when it is not a number. */
static pid_t parse_pid(const char *name)
{
    char *end;
    errno = 0;
    unsigned long pid = strtoul(name, &end, 10);
    bool is_pid = name[0] >= '1' && name[0] <= '9' && *end == '\0' && errno == 0 && pid <= INT_MAX;
    return is_pid ? (pid_t)pid : 0;
}

static bool is_of_command(const pl_run_record *record, pid_t pid)
{
    pl_ledger_header header;
    return read_header(record->directory, &header) == 0 &&
           (atomic_load_explicit(&header.command_pid, memory_order_relaxed) == (uint32_t)pid ||
            header.supervisor_pid == pid);
}

/* The ledger still knows dead processes by their sites, refusals and crashes. */
static bool is_in_ledger(const pl_ledger *ledger, pid_t pid)
{
    uint32_t wanted = (uint32_t)pid;
    for (int i = 0; i < pl_ledger_n_slots(ledger); i++)
        if (atomic_load_explicit(&ledger->slots[i].pid, memory_order_relaxed) == wanted)
            return true;
    for (int i = 0; i < PL_SITES; i++)
        if (atomic_load_explicit(&ledger->sites[i].owner_pid, memory_order_relaxed) == wanted)
            return true;
    for (int i = 0; i < PL_EVENTS; i++)
        if (atomic_load_explicit(&ledger->events[i].sequence, memory_order_relaxed) != 0 &&
            ledger->events[i].pid == pid)
            return true;
    for (int i = 0; i < PL_CRASHES; i++)
        if (ledger->crashes[i].pid == pid)
            return true;
    return false;
}

static bool has_process(const pl_run_record *record, pid_t pid)
{
    char path[PATH_MAX];
    pl_ledger *ledger = NULL;
    if (join(path, record->directory, PL_RECORD_LEDGER) < 0 ||
        pl_ledger_open(path, 0, &ledger, NULL) < 0)
        return false;
    bool found = is_in_ledger(ledger, pid);
    pl_ledger_close(ledger);
    return found;
}

/* Finds the newest run whose command, or else one of whose other processes, had this pid. */
static const pl_run_record *find_by_pid(const pl_run_record *records, size_t n, pid_t pid)
{
    for (size_t i = 0; pid != 0 && i < n; i++)
        if (is_of_command(&records[i], pid))
            return &records[i];
    for (size_t i = 0; pid != 0 && i < n; i++)
        if (has_process(&records[i], pid))
            return &records[i];
    return NULL;
}

static int open_path(const char *path, pl_run_record *ret_record, pl_error *reterr)
{
    pl_run_record record;
    int r = record_at(path, &record);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot open the record '%s': %s", path, pl_error_text(r));
    if (!has_file(&record, PL_RECORD_LEDGER) && !has_file(&record, PL_RECORD_REPORT))
        return pl_error_set(reterr, -ENOENT, "'%s' holds no record of a run", path);
    *ret_record = record;
    return 0;
}

/* Finds the run of this id, the newest that had a process of this pid, or the one whose id begins
 * so. */
static int find_listed(const pl_run_record *records, size_t n, const char *name,
                       pl_run_record *ret_record, pl_error *reterr)
{
    const pl_run_record *found = NULL;
    size_t n_found = 0;
    for (size_t i = 0; i < n && found == NULL; i++)
        if (strcmp(records[i].id, name) == 0)
            found = &records[i];
    if (found == NULL)
        found = find_by_pid(records, n, parse_pid(name));
    if (found != NULL) {
        *ret_record = *found;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        if (strncmp(records[i].id, name, strlen(name)) == 0) {
            found = &records[i];
            n_found++;
        }
    if (n_found > 1)
        return pl_error_set(reterr, -ENOTUNIQ, "'%s' is the start of %zu run ids: give more of it",
                            name, n_found);
    if (n_found == 0)
        return -ENOENT;
    *ret_record = *found;
    return 0;
}

static int refuse_name(const pl_run_record *records, size_t n, const char *name, pl_error *reterr)
{
    if (parse_pid(name) != 0)
        return pl_error_set(reterr, -ENOENT,
                            "no recorded run is named '%.80s' or had a process with that pid: "
                            "'plimsoll runs' lists them",
                            name);
    char text[PL_NEAREST_TEXT_BYTES];
    pl_nearest nearest = pl_nearest_begin(name, "");
    pl_nearest_try(&nearest, "last");
    for (size_t i = 0; i < n; i++)
        pl_nearest_try(&nearest, records[i].id);
    pl_nearest_text(&nearest, text);
    return pl_error_set(reterr, -ENOENT, "no run is named '%.80s'%s 'plimsoll runs' lists them",
                        name, *text != '\0' ? text : ":");
}

int pl_run_record_open(const char *name, pl_run_record *ret_record, pl_error *reterr)
{
    if (strchr(name, '/') != NULL)
        return open_path(name, ret_record, reterr);

    PL_CLEANUP(freep) pl_run_record *records = NULL;
    size_t n = 0;
    int r = pl_run_record_list(&records, &n, reterr);
    if (r < 0)
        return r;
    if (strcmp(name, "last") == 0) {
        if (n == 0)
            return pl_error_set(reterr, -ENOENT, "no run is recorded yet");
        *ret_record = records[0];
        return 0;
    }
    if (name[0] != '\0')
        r = find_listed(records, n, name, ret_record, reterr);
    else
        r = -ENOENT;
    if (r == -ENOENT && name[0] != '\0' && access(name, F_OK) == 0)
        return open_path(name, ret_record, reterr);
    if (r == -ENOENT)
        return refuse_name(records, n, name, reterr);
    return r;
}

/* Returns the pid in an id: the supervisor's. 0 when it is not a number. */
static pid_t id_pid(const char *id)
{
    long pid = strtol(id + strlen("20261116-031522-"), NULL, 10);
    return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

static bool rebooted_since(const pl_ledger_header *header)
{
    char now[64];
    int n = pl_proc_read_file("/proc/sys/kernel/random/boot_id", now, sizeof(now));
    if (n <= 0 || header->boot_id[0] == '\0')
        return false;
    now[strcspn(now, "\n")] = '\0';
    return strncmp(now, header->boot_id, sizeof(header->boot_id)) != 0;
}

static bool alive(const pl_ledger_header *header, pid_t pid, uint64_t start_ticks)
{
    return pid > 0 && !rebooted_since(header) && pl_proc_alive(pid, start_ticks);
}

static bool supervisor_alive(const pl_ledger_header *header)
{
    return alive(header, header->supervisor_pid, header->supervisor_start_ticks);
}

static bool command_alive(const pl_ledger_header *header)
{
    uint32_t pid = atomic_load_explicit(&header->command_pid, memory_order_relaxed);
    return pid <= INT_MAX && alive(header, (pid_t)pid, header->command_start_ticks);
}

/* Without a readable ledger, the pid in the name decides: better to keep one too many. */
static bool still_runs(const pl_run_record *record)
{
    pl_ledger_header header;
    if (read_header(record->directory, &header) < 0)
        return pl_proc_alive(id_pid(record->id), 0);
    return supervisor_alive(&header) || command_alive(&header);
}

/* Did this kernel run here later than `*latest_ns`, and end? Then *latest_ns becomes its start.
 * When both are killed, the kernel may outlive its supervisor for a while, giving back memory: the
 * supervisor decides. */
static bool ran_later(const char *directory, const char *kernel, uint64_t *latest_ns)
{
    pl_ledger_header header;
    if (read_header(directory, &header) < 0 || header.started_realtime_ns <= *latest_ns ||
        strncmp(header.kernel, kernel, sizeof(header.kernel)) != 0 || supervisor_alive(&header))
        return false;
    *latest_ns = header.started_realtime_ns;
    return true;
}

int pl_run_record_of_kernel(const char *kernel, char ret_id[PL_RECORD_ID_BYTES], pl_error *reterr)
{
    char runs[PATH_MAX], path[PATH_MAX];
    int r = kernel[0] == '\0' ? pl_error_set(reterr, -EINVAL, "a kernel has a name")
                              : runs_directory(runs, reterr);
    if (r < 0)
        return r;
    PL_CLEANUP(closedirp) DIR *dir = opendir(runs);
    uint64_t latest_ns = 0;
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (is_id(entry->d_name) && join(path, runs, entry->d_name) == 0 &&
            ran_later(path, kernel, &latest_ns))
            snprintf(ret_id, PL_RECORD_ID_BYTES, "%.*s", PL_RECORD_ID_BYTES - 1, entry->d_name);
    if (latest_ns == 0)
        return pl_error_set(reterr, -ENOENT, "no run of the kernel '%s' has ended", kernel);
    return 0;
}

/* Removes the plain files of one folder, then the folder. Follows no link, enters no subfolder. */
static int remove_folder(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    PL_CLEANUP(closedirp) DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return -ENOMEM;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(fd, entry->d_name, 0); /* if a file stays, rmdir fails and says so */
    return rmdir(directory) < 0 ? -errno : 0;
}

int pl_run_record_prune(size_t n_keep, pl_error *reterr)
{
    record_list list = {0};
    int r = list_folders(&list, reterr);
    int n_removed = 0;
    for (size_t i = n_keep; r == 0 && i < list.n; i++)
        if (!still_runs(&list.records[i]) && remove_folder(list.records[i].directory) == 0)
            n_removed++;
    free(list.records);
    return r < 0 ? r : n_removed;
}

bool pl_run_record_is_listed(const char *directory)
{
    char runs[PATH_MAX], real[PATH_MAX];
    if (runs_directory(runs, NULL) < 0 || realpath(runs, real) == NULL)
        return false;
    size_t n = strlen(real);
    return strncmp(directory, real, n) == 0 && directory[n] == '/' && is_id(directory + n + 1);
}

bool pl_run_record_resident_bytes(const pl_ledger *ledger, pid_t pid, uint64_t start_ticks,
                                  uint64_t *ret_bytes)
{
    const pl_ledger_header *header = &ledger->header;
    pl_proc_memory memory;
    if (start_ticks == 0 || header->pid_namespace != pl_proc_pid_namespace() ||
        !alive(header, pid, start_ticks) || pl_proc_memory_read(pid, &memory) < 0)
        return false;
    *ret_bytes = memory.resident_bytes;
    return true;
}

/* The group's count is evidence only while it is the same group: a container that is started again
 * with the same state folder has a new one of that name, and its kills are other runs'. */
static void read_group_kills(const pl_ledger_header *header, pl_run_record_state *state)
{
    char cgroup[sizeof(header->cgroup_path) + 1] = "";
    memcpy(cgroup, header->cgroup_path, sizeof(header->cgroup_path));
    uint64_t id, n_now = 0;
    if (cgroup[0] != '/' || header->cgroup_id == 0)
        return;
    state->had_group = true;
    if (pl_cgroup_id_at(cgroup, &id) < 0 || id != header->cgroup_id ||
        pl_cgroup_oom_kills_at(cgroup, &n_now) < 0)
        return;
    state->oom_counted = true;
    state->n_oom_kills = pl_sub_sat_u64(n_now, header->baseline_oom_kills);
}

void pl_run_record_state_read(const pl_ledger *ledger, pl_run_record_state *ret_state)
{
    const pl_ledger_header *header = &ledger->header;
    pl_run_record_state state = {
        .cut_short = pl_lost_page_count() > 0,
        .rebooted = rebooted_since(header),
        .supervisor_alive = supervisor_alive(header),
        .command_alive = command_alive(header),
    };
    if (!state.rebooted) {
        read_group_kills(header, &state);
        uint64_t n_now;
        state.vm_counted = pl_machine_oom_kills("", &n_now) == 0;
        if (state.vm_counted)
            state.n_vm_oom_kills = pl_sub_sat_u64(n_now, header->baseline_vm_oom_kills);
    }
    *ret_state = state;
}
