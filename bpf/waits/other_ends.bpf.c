// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * other_ends.bpf.c: finds the processes at the other ends of the waits of sessions (ends.h): those
 * with a descriptor of that pipe, of a socket with that local address, or of the FUSE device that
 * serves that file system. The kernel keeps no way from these to a process, so the iterator walks
 * the descriptors of all processes, once per session.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>

#include "bpf/maps/hidden_address.h"
#include "bpf/sockets/descriptor_walk.h"
#include "bpf/sockets/socket_read.h"
#include "bpf/waits/ends.h"
#include "bpf/waits/look_halt.h"
#include "bpf/watch/scope.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A pass over all processes. */
struct end_walk {
	struct descriptor_walk walk;
	struct end_process process; /* the walked one */
	struct end_key key;	    /* of the current descriptor */
	struct socket_ends ends;
};

/* One element per reading thread, because iterators are preemptible. */
TASK_MAP(end_walks, struct end_walk);

/*
 * Adds the walked process to the element of the key. A process that has a connection replaces its
 * own entry as a listener or, without space, that of another listener.
 */
static __noinline int add_process(struct end_walk *w, __u32 listens)
{
	struct end_value *value = w ? bpf_map_lookup_elem(&ends, &w->key) : 0;
	__u32 at = END_PROCESSES, count;

	if (!value)
		return 0;
	count = READ_WORD(value->count);
	for (__u32 i = 0; i < END_PROCESSES; i++) {
		const struct end_process *p = &value->processes[i];
		bool is_own = i < count && p->tgid == w->process.tgid;

		if (is_own && p->listens <= listens)
			return 0;
		if (i >= count || is_own || (at == END_PROCESSES && p->listens && !listens))
			at = i;
		if (i >= count || is_own)
			break;
	}
	if (at >= END_PROCESSES || at >= count)
		value->count++;
	if (at >= END_PROCESSES)
		return 0;
	w->process.listens = listens;
	value->processes[at] = w->process;
	return 0;
}

static __always_inline void forget_key(struct end_walk *w)
{
	__builtin_memset(&w->key, 0, sizeof(w->key));
}

static __always_inline void look_at_pipe(struct end_walk *w, const struct file *file,
					 const struct inode *inode)
{
	const struct file___end *fields = (const void *)file;
	__u32 mode = BPF_CORE_READ(fields, f_mode);

	forget_key(w);
	w->key.inode = BPF_CORE_READ(inode, i_ino);
	w->key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	w->key.kind = END_READER;
	if (mode & FMODE_READ)
		add_process(w, 0);
	w->key.kind = END_WRITER;
	if (mode & FMODE_WRITE)
		add_process(w, 0);
}

static __always_inline void look_at_socket(struct end_walk *w, const struct file *file)
{
	const struct socket *socket = BPF_CORE_READ(file, private_data);
	const struct sock *sk = BPF_CORE_READ(socket, sk);
	const struct sock___socket *fields = (const void *)sk;
	const struct net___end *net_ns;
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	const __u64 *address = (const __u64 *)w->ends.local;
	__u32 net;

	if (!sk || BPF_CORE_READ(socket, file) != file ||
	    (family != FAMILY_INET && family != FAMILY_INET6) ||
	    BPF_CORE_READ(sk, sk_protocol) != PROTOCOL_TCP || !state || state == TCP_CLOSE)
		return;
	socket_read_ends(sk, &w->ends);
	if (w->ends.family == FAMILY_INET6 && socket_is_mapped(w->ends.local)) {
		w->ends.family = FAMILY_INET;
		socket_unmap(w->ends.local);
	}
	net_ns = (const void *)BPF_CORE_READ(fields, __sk_common.skc_net.net);
	net = BPF_CORE_READ(net_ns, ns.inum);
	forget_key(w);
	w->key.kind = END_TCP;
	w->key.port = w->ends.local_port;
	if (state == TCP_LISTEN && !address[0] && !address[1]) {
		w->key.kind = END_TCP_ANY;
		w->key.net = net;
		add_process(w, 1);
		return;
	}
	w->key.family = w->ends.family;
	__builtin_memcpy(w->key.address, w->ends.local, sizeof(w->key.address));
	/*
	 * A user may give any address to a network namespace of their own, and bind a socket to an
	 * address of another host (IP_FREEBIND), which then has no connection. The key of a
	 * loopback address has the namespace, so it is that of the waiting thread.
	 */
	if (!BPF_CORE_READ(net_ns, user_ns, level) && state != TCP_LISTEN && state != TCP_SYN_SENT)
		add_process(w, 0);
	w->key.net = net;
	add_process(w, state == TCP_LISTEN);
}

static __always_inline void look_at_fuse(struct end_walk *w, const struct file *file)
{
	const struct fuse_dev *device = BPF_CORE_READ(file, private_data);
	const struct fuse_conn *connection = 0;

	if (!bpf_core_field_exists(device->fc) || !bpf_core_field_exists(connection->dev) ||
	    !device)
		return;
	forget_key(w);
	w->key.kind = END_FUSE;
	w->key.device = BPF_CORE_READ(device, fc, dev);
	if (w->key.device)
		add_process(w, 0);
}

static __always_inline void look_at_lock(struct end_walk *w, const struct file *file)
{
	forget_key(w);
	w->key.kind = END_LOCK;
	w->key.inode = hidden_address((__u64)file);
	add_process(w, 0);
}

/*
 * Examines the file of descriptor `fd` of the walked process. A global function: the verifier
 * checks it once, and not in each walk.
 */
__noinline int end_at(__u32 fd)
{
	struct end_walk *w = bpf_task_storage_get(&end_walks, bpf_get_current_task_btf(), 0, 0);
	const struct file *file = w ? descriptor_walk_file(&w->walk, fd) : 0;
	const struct inode___end *device;
	const struct inode *inode;
	__u32 mode;

	if (!w || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	device = (const void *)inode;
	mode = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	if (mode == S_IFIFO)
		look_at_pipe(w, file, inode);
	else if (mode == S_IFSOCK)
		look_at_socket(w, file);
	else if (mode == S_IFREG || mode == S_IFDIR)
		look_at_lock(w, file);
	else if (mode == S_IFCHR && BPF_CORE_READ(device, i_rdev) == FUSE_DEVICE)
		look_at_fuse(w, file);
	return 0;
}

static long walk_next(__u32 i, void *context)
{
	struct end_walk *w = *(struct end_walk **)context;
	__s32 fd = descriptor_walk_next(&w->walk, END_FILES_MAX, END_PASS_FILES);

	if (fd >= 0)
		end_at(fd);
	return fd == DESCRIPTOR_END;
}

struct bpf_map;

static long clear_end(struct bpf_map *map, const void *key, void *value, void *context)
{
	((struct end_value *)value)->count = 0;
	return 0;
}

static long forget_end(struct bpf_map *map, const void *key, void *value, void *context)
{
	__u32 slot = ((const struct end_value *)value)->slot;

	if (!bpf_map_delete_elem(map, key))
		table_count(TABLE_ENDS, slot, -1);
	return 0;
}

/* Starts a pass and ends its first read. Without a session it empties `ends`. */
static __always_inline int begin_reading(struct end_walk *w, __u64 reading, struct control *c)
{
	descriptor_walk_begin(&w->walk, reading);
	w->walk.left_out = 0;
	c->ends_left_out = 0;
	if (READ_WORD(c->seeks))
		bpf_for_each_map_elem(&ends, clear_end, 0, 0);
	else
		bpf_for_each_map_elem(&ends, forget_end, 0, 0);
	return 1;
}

/* Examines the files of a process. Returns whether some are left for the next read. */
static __always_inline bool look_at_process(struct end_walk *w, struct task_struct *task)
{
	__u64 files = descriptor_walk_files(&w->walk, task);
	const struct task_struct *leader;

	if (!files || !scope_allows_task(task))
		return false;
	descriptor_walk_enter(&w->walk, task, files);
	leader = BPF_CORE_READ(task, group_leader);
	w->process.tgid = task->tgid;
	w->process.flags = look_halt(leader, BPF_CORE_READ(leader, __state));
	BPF_CORE_READ_INTO(&w->process.comm, leader, comm);
	return descriptor_walk_run(&w->walk, &w, walk_next);
}

/*
 * Finds the processes of all keys. Returning 1 ends the read(2), and the next one starts with the
 * same task (bpf_seq_read in kernel/bpf/bpf_iter.c).
 */
SEC("iter/task")
int other_ends(struct bpf_iter__task *ctx)
{
	struct control *c = control_get();
	struct task_struct *task = ctx->task;
	struct end_walk *w = map_of_thread(&end_walks);

	if (!task || !c || !w)
		return 0;
	if (w->walk.reading != ctx->meta->session_id)
		return begin_reading(w, ctx->meta->session_id, c);
	if (!READ_WORD(c->seeks) || !READ_WORD(c->armed))
		return 0;
	if (descriptor_walk_has_room(&w->walk)) {
		bool is_unfinished = look_at_process(w, task);

		c->ends_left_out = w->walk.left_out;
		if (!is_unfinished)
			return 0;
	}
	return descriptor_walk_pause(&w->walk);
}
