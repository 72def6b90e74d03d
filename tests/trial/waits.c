/* Waits for a moment of the wall clock in every way that POSIX and Linux have, and says of each
   whether it ended then: not before, by the monotonic clock, and with the answer that it should
   have. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SPAN_NS 20000000LL

static long long ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long began;

static struct timespec soon(void) {
    began = ns(CLOCK_MONOTONIC);
    long long then = ns(CLOCK_REALTIME) + SPAN_NS;
    return (struct timespec){then / 1000000000LL, then % 1000000000LL};
}

static void say(const char *what, int right) {
    int late = ns(CLOCK_MONOTONIC) - began >= SPAN_NS;
    printf("%s %s\n", what, right && late ? "ok" : right ? "early" : strerror(errno));
    fflush(stdout);
}

int main(void) {
    struct timeval day;
    struct timespec coarse;
    gettimeofday(&day, NULL);
    clock_gettime(CLOCK_REALTIME_COARSE, &coarse);
    printf("%ld %ld %ld %ld\n", (long)time(NULL), (long)day.tv_sec, (long)coarse.tv_sec,
           (long)(ns(CLOCK_REALTIME) / 1000000000LL));
    fflush(stdout);

    struct timespec then = soon();
    say("clock_nanosleep", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &then, NULL) == 0);

    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    then = soon();
    say("sem_timedwait", sem_timedwait(&semaphore, &then) == -1 && errno == ETIMEDOUT);

    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    then = soon();
    say("cond_timedwait", pthread_cond_timedwait(&condition, &mutex, &then) == ETIMEDOUT);

    int timer = timerfd_create(CLOCK_REALTIME, 0);
    uint64_t times = 0;
    struct itimerspec at = {{0, 0}, soon()};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
    say("timerfd", read(timer, &times, sizeof times) == sizeof times && times == 1);

    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    soon();
    long long when = began + SPAN_NS;
    at.it_value = (struct timespec){when / 1000000000LL, when % 1000000000LL};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
    say("monotonic", read(timer, &times, sizeof times) == sizeof times && times == 1);

    sigset_t alarm;
    int got = 0;
    timer_t posix;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGUSR1);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    timer_create(CLOCK_REALTIME, &event, &posix);
    at.it_value = soon();
    timer_settime(posix, TIMER_ABSTIME, &at, NULL);
    sigwait(&alarm, &got);
    say("timer", got == SIGUSR1);

    unsigned word = 0;
    then = soon();
    long answer = syscall(SYS_futex, &word, 9 | 256, 0, &then, NULL, ~0);
    say("futex", answer == -1 && errno == ETIMEDOUT);
    return 0;
}
