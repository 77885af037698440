#include "quiet.h"

#include "exec.h"
#include "frame.h"
#include "job.h"
#include "wire.h"

enum { REPLY_LENGTH = 16 };

static uint32_t waiting; /* the channel, or 0 */

bool quiet_pending(void) { return waiting != 0; }

void quiet_forget(void) { waiting = 0; }

void quiet_start(uint32_t channel)
{
    if (channel == 0 || job_on(channel) || waiting) {
        exec_refuse(channel, NO_MALFORMED, "the channel is in use, or it is being done already");
        return;
    }
    waiting = channel;
    for (int i = 0; i < MAX_JOBS; i++)
        if (jobs[i].kind == JOB_EXEC)
            exec_quiet(&jobs[i]);
    quiet_tick();
}

/* A command begun later is not waited for. */
static bool job_is_quiet(struct job *job)
{
    if (job->kind != JOB_EXEC || !job->quieted)
        return true;
    if (job->lingering && !job->killing)
        exec_quiet(job); /* it settled with something left while the order was on its way */
    return job->settled && !job->lingering;
}

void quiet_tick(void)
{
    static const uint8_t done[REPLY_LENGTH];
    bool quiet = true;
    if (!waiting)
        return;
    for (int i = 0; i < MAX_JOBS; i++)
        quiet = job_is_quiet(&jobs[i]) && quiet;
    if (kill_orphans() > 0 || !quiet)
        return;
    frames_send(F_REPLY, waiting, done, sizeof done);
    waiting = 0;
}
