/* A clock that a test moves: preloaded into a server, it stands between it and the time of day.
 *
 * RL_CLOCK names a file of two words, which the test writes and this maps: microseconds to add to
 * the real time, and the microseconds since 1970 to stand still at, unless that is the least there
 * is. The monotonic clock, by which a server waits and measures, goes on as it is.
 *
 * The real time comes from the kernel by number. To look up the function that this one hides would
 * allocate, and the allocator asks for the time while it starts. For the same reason calls that come
 * before `map_words` are answered with the real time. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct words {
    _Atomic int64_t offset_us, frozen_us;
} unmoved = {0, INT64_MIN}, *words = &unmoved;

__attribute__((constructor)) static void map_words(void) {
    const char *path = getenv("RL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = mmap(NULL, sizeof(struct words), PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) abort(); /* or the test would go by another clock than it thinks */
    words = mapped;
    close(file);
}

static int64_t now_us(void) {
    int64_t frozen_us = words->frozen_us;
    if (frozen_us != INT64_MIN) return frozen_us;
    struct timespec real;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    return real.tv_sec * 1000000 + real.tv_nsec / 1000 + words->offset_us;
}

/* Whole seconds, rounded down before 1970 too, and the microseconds behind them. */
static struct timeval split(int64_t us) {
    int64_t rest_us = us % 1000000;
    if (rest_us < 0) rest_us += 1000000;
    return (struct timeval){(us - rest_us) / 1000000, rest_us};
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone; /* obsolete, and asked for by no server */
    *now = split(now_us());
    return 0;
}

time_t time(time_t *seconds) {
    struct timeval now = split(now_us());
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) {
        return syscall(SYS_clock_gettime, id, now);
    }
    struct timeval split_now = split(now_us());
    *now = (struct timespec){split_now.tv_sec, split_now.tv_usec * 1000};
    return 0;
}
