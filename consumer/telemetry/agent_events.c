/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/telemetry/agent_events.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/broker/broker_client.h"
#include "consumer/conditions/pressure_status.h"
#include "consumer/sampling/sampler_status.h"
#include "consumer/telemetry/telemetry.h"
#include "consumer/watch/scope.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static void write_caps(struct jsonw *w, const char *key, uint64_t caps)
{
	char text[17];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)caps);
	jsonw_string(w, key, text);
}

void agent_events_write_self(const struct telemetry *t, struct jsonw *w)
{
	const struct policy_self *self = t->self;

	jsonw_object(w, "self");
	write_caps(w, "cap_eff", self->cap_eff);
	write_caps(w, "cap_prm", self->cap_prm);
	write_caps(w, "cap_bnd", self->cap_bnd);
	write_caps(w, "cap_inh", self->cap_inh);
	write_caps(w, "cap_amb", self->cap_amb);
	jsonw_u64(w, "seccomp", self->seccomp);
	jsonw_u64(w, "no_new_privs", self->no_new_privs);
	jsonw_u64(w, "uid", self->uid);
	jsonw_u64(w, "gid", self->gid);
	jsonw_bool(w, "dumpable", self->dumpable);
	jsonw_u64(w, "landlock_abi", self->landlock_abi);
	jsonw_object_end(w);
}

/* A feature that this start has or lacks, and the consequence of lacking it. */
struct feature {
	const char *name;
	bool found;
	const char *reason, *lost;
};

#define FEATURES_MAX 24

/* Collects the features of the host. Returns their number. */
static size_t find_host(const struct host *host, struct feature *f)
{
	size_t n = 0;

	f[n++] = (struct feature){
		"host_pids", !host->hidden_processes, host->hidden_processes,
		"processes outside of this pid namespace, and processes that ran before the "
		"consumer, are not found; their watches end at the next scan"
	};
	f[n++] = (struct feature){
		"host_cgroups", !host->hidden_cgroups, host->hidden_cgroups,
		"cgroups outside of the mounted hierarchy are not watched by any rule; a capture "
		"by pid finds no cgroup"
	};
	f[n++] = (struct feature){
		"proc_pids", !host->hidden_proc, host->hidden_proc,
		"a capture by pid finds no process, limits of v1 controllers are unknown, names of "
		"JITs and mount points are not read: remount /proc with gid= of a group that the "
		"consumer is in"
	};
	f[n++] = (struct feature){ "host_clocks", !host->shifted_clocks, host->shifted_clocks,
				   "samples have the host's times and count as stale" };
	return n;
}

static size_t find_features(const struct telemetry *t, struct feature *f)
{
	static const char *const psi[] = { "psi_cpu", "psi_memory", "psi_io" };
	const char *why = "";
	size_t n = 0;

	for (int i = 0; i < RESOURCE_COUNT_; i++)
		f[n++] = (struct feature){ psi[i], t->pressure->scan.system[i].fd >= 0,
					   strerror(-t->pressure->scan.system[i].error),
					   "thresholds on this resource never fire" };
	f[n++] = (struct feature){ "psi_wake",
				   t->pressure->scan.system[RESOURCE_CPU].trigger_fd >= 0,
				   "no unprivileged trigger on /proc/pressure",
				   "a timer reads the system's pressure all the time" };
	f[n++] = (struct feature){ "landlock", t->self->landlock_abi > 0,
				   "the kernel has no Landlock",
				   "file modes alone limit the files that the consumer can open" };
	n += find_host(t->host, f + n);
	f[n++] = (struct feature){
		"open_coded_vma", t->pins->abi.vma_open_coded != 0,
		"the kernel has no open-coded vma iterator (Linux 6.7 has)",
		"mappings are read one by one, and again if they change in the meantime"
	};
	f[n++] = (struct feature){
		"page_walk", t->pins->abi.page_walk != 0,
		"the kernel's map of its memory was not found",
		"a replaced library is noticed only when the mappings are next read"
	};
	f[n++] = (struct feature){
		"kernel_rows", t->pins->abi.kernel_rows != 0,
		"the kernel has no unwind tables of a known form, or hides their addresses",
		"kernel stacks are taken by the kernel's own unwinder, at about four times the cost"
	};
	f[n++] = (struct feature){
		"oom_victims", t->pins->abi.oom_victims != 0,
		"the kernel does not report OOM victims (needs Linux 6.1.129, 6.6.79 or 6.8)",
		"there is no line oom, and rules on oom_kill never fire"
	};
	f[n++] = (struct feature){
		"broker", broker_client_there(t->broker, &why), why,
		t->pins->abi.cpus_sampled
			? "every CPU is sampled all the time, pressure is followed by scan, files "
			  "of other mount namespaces are not read"
			: "there are no stacks until it answers, pressure is "
			  "followed by scan, files of other mount namespaces "
			  "are not read"
	};
	return n;
}

static void write_features(const struct telemetry *t, struct jsonw *w)
{
	struct feature features[FEATURES_MAX];
	size_t n = find_features(t, features);

	jsonw_object(w, "features");
	for (size_t i = 0; i < n; i++)
		jsonw_bool(w, features[i].name, features[i].found);
	jsonw_object_end(w);
	jsonw_array(w, "missing");
	for (size_t i = 0; i < n; i++) {
		if (features[i].found)
			continue;
		jsonw_object(w, NULL);
		jsonw_string(w, "feature", features[i].name);
		jsonw_string(w, "reason", features[i].reason);
		jsonw_string(w, "lost", features[i].lost);
		jsonw_object_end(w);
	}
	jsonw_array_end(w);
}

static void write_abi(const struct telemetry *t, struct jsonw *w)
{
	jsonw_object(w, "abi");
	jsonw_u64(w, "version", t->pins->abi.version);
	jsonw_u64(w, "hz", t->pins->abi.hz);
	jsonw_u64(w, "slots", t->pins->abi.slots);
	jsonw_u64(w, "targets", t->pins->abi.targets);
	jsonw_u64(w, "rules", t->pins->abi.rules);
	jsonw_u64(w, "samples_ring_bytes", t->pins->samples.size);
	jsonw_object_end(w);
}

static void write_gap(const struct agent_gap *gap, struct jsonw *w)
{
	char text[SESSION_TEXT_BYTES];

	if (gap->lost_lines) {
		jsonw_u64(w, "lost_lines", gap->lost_lines);
		jsonw_u64(w, "lost_bytes", gap->lost_bytes);
		jsonw_u64(w, "lost_sessions", gap->lost_sessions);
	}
	if (!gap->gap_ms && !gap->n_cut)
		return;
	jsonw_u64(w, "gap_ms", gap->gap_ms);
	jsonw_array(w, "cut_sessions");
	for (size_t i = 0; i < gap->n_cut; i++) {
		event_line_session_text(gap->cut[i], text);
		jsonw_string(w, NULL, text);
	}
	jsonw_array_end(w);
}

void agent_events_start(const struct telemetry *t, const struct agent_gap *gap)
{
	struct jsonw w;

	event_line_begin(t->log->lines, &w, "agent.start", NULL);
	jsonw_string(&w, "version", TROCAR_VERSION);
	jsonw_u64(&w, "pid", (uint64_t)getpid());
	jsonw_string(&w, "kernel", t->host->kernel);
	agent_events_write_self(t, &w);
	write_features(t, &w);
	sampler_status_write(t->sampler, &w);
	write_abi(t, &w);
	if (t->scope->count)
		scope_write_prefixes(t->scope, "scope", &w);
	jsonw_string(&w, "cgroup_mode", cgroupfs_mode_name(t->host->cgroup_mode));
	write_gap(gap, &w);
	event_line_end(t->log->lines, &w);
	if (gap->lost_lines)
		event_line_error(
			t->log->lines, NULL, "output_lost",
			"see why the output took no lines when the consumer ended", NULL, NULL,
			"an earlier consumer could not write its last %llu lines, the ends of "
			"%llu sessions among them",
			(unsigned long long)gap->lost_lines,
			(unsigned long long)gap->lost_sessions);
	if (gap->gap_ms || gap->n_cut)
		event_line_error(
			t->log->lines, NULL, "consumer_gap",
			"see why the consumer ended; the programs went on until they were idle",
			NULL, NULL,
			"an earlier consumer ended without notice: nothing was drained for %llu "
			"ms, %zu sessions were cut",
			(unsigned long long)gap->gap_ms, gap->n_cut);
}

void agent_events_write_totals(const struct telemetry *t, struct jsonw *w)
{
	struct totals kernel = {};
	struct output_queue_stats output;

	pinned_maps_totals(t->pins, &kernel);
	output_queue_stats(t->output, &output);
	jsonw_object(w, "totals");
	jsonw_u64(w, "events", kernel.events);
	jsonw_u64(w, "events_lost", kernel.events_lost);
	jsonw_u64(w, "events_limited", kernel.events_limited);
	jsonw_u64(w, "events_over_quota", kernel.events_over_quota);
	jsonw_u64(w, "events_shed", kernel.events_shed);
	jsonw_u64(w, "errors_lost", kernel.errors_lost);
	jsonw_u64(w, "stale_ticks", kernel.stale_ticks);
	jsonw_u64(w, "targets_full", kernel.targets_full);
	jsonw_u64(w, "ticks_watched", kernel.ticks_watched);
	jsonw_u64(w, "samples", t->counts->samples);
	jsonw_u64(w, "sessions", t->sessions->total);
	jsonw_u64(w, "triggers_held", t->triggers->held);
	jsonw_u64(w, "stale_events", t->counts->stale_events);
	pressure_status_write_totals(t->pressure, w);
	jsonw_u64(w, "lines", output.lines);
	jsonw_u64(w, "lines_dropped", output.dropped_lines);
	jsonw_u64(w, "lines_left_out", t->budget->lines.left_out);
	jsonw_object_end(w);
}

void agent_events_stop(const struct telemetry *t, const char *reason)
{
	struct jsonw w;

	event_line_begin(t->log->lines, &w, "agent.stop", NULL);
	jsonw_string(&w, "reason", reason ? reason : "fatal");
	jsonw_u64(&w, "uptime_ms", (clock_mono_ns() - t->start_ns) / NSEC_PER_MSEC);
	agent_events_write_totals(t, &w);
	event_line_end(t->log->lines, &w);
}
