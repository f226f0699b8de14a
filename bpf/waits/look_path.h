/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_path.h: builds the path of a file that a thread waits for, as the thread itself would name
 * it. The walk goes upwards from the file, by its parents and their mounts, to the root directory
 * of the thread, in kernel memory only. Names and mounts may change during the walk; RCU, which the
 * iterator holds, keeps them intact. The sequence counters of all names are read twice, so that no
 * path is reported if a part of it was renamed in between.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_PATH_H
#define TROCAR_BPF_WAITS_LOOK_PATH_H

#include "bpf/kernel/kernel_path.h"
#include "bpf/waits/look_memory.h"

#define LOOK_PATH_MOUNTS 16 /* maximum number of mounts that a path crosses */
#define LOOK_PATH_MASK	 (LOOK_PATH_ROOM - 1)
#define ERROR_FIRST	 ((__u64)-4095)

/* Returns whether the mount is in a mount namespace of processes. */
static __always_inline bool is_mounted(const struct mount *mount)
{
	__u64 ns = (__u64)BPF_CORE_READ(mount, mnt_ns);

	return ns && ns < ERROR_FIRST;
}

/* Moves from the root of a mount to its mount point. Returns false at the end of the path. */
static __always_inline bool cross_mount(struct look_path *p, struct mount *mount)
{
	struct mount *parent = BPF_CORE_READ(mount, mnt_parent);

	if (!p->crossed) {
		p->inner = p->count;
		p->crossed = 1;
	}
	if (parent == mount) {
		p->end = is_mounted(mount) ? LOOK_PATH_WHOLE : LOOK_PATH_DETACHED;
		return false;
	}
	p->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
	p->mount = (__u64)parent;
	return true;
}

/* Moves up by one name or one mount. Returns false at the end of the path, and sets p->end. */
static __always_inline bool go_up(struct look_path *p)
{
	const struct dentry___path *dentry = (const void *)p->dentry, *parent;
	struct mount *mount = (void *)p->mount;
	__u32 at = p->count, n, seq;

	if (p->dentry == p->root_dentry && p->mount == p->root_mount) {
		p->end = LOOK_PATH_WHOLE;
		return false;
	}
	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root))
		return cross_mount(p, mount);
	seq = BPF_CORE_READ(dentry, d_seq.seqcount.sequence); /* before its members */
	parent = BPF_CORE_READ(dentry, d_parent);
	n = BPF_CORE_READ(dentry, d_name.len);
	p->end = parent == dentry ? LOOK_PATH_DETACHED : LOOK_PATH_DEEP;
	if (parent == dentry || at >= LOOK_PATH_PARTS)
		return false;
	at &= LOOK_PATH_PARTS - 1;
	p->parts[at] = p->dentry;
	p->bytes[at] = n;
	p->left += (n & 0xff) + 1;
	p->sum += seq;
	p->odd |= seq | (n > 0xff);
	p->count++;
	p->dentry = (__u64)parent;
	return true;
}

/* Callback of bpf_loop: returning 1 ends the loop. */
static long walk_name(__u32 i, void *context)
{
	struct looker **l = context;

	return !go_up(&(*l)->path);
}

/* Collects the names of the path, the last one first. */
static __always_inline void walk_path(struct looker *l)
{
	l->path.end = LOOK_PATH_DEEP;
	bpf_loop(LOOK_PATH_PARTS + LOOK_PATH_MOUNTS, walk_name, &l, 0);
	if (!l->path.crossed)
		l->path.inner = l->path.count;
}

/*
 * Returns whether the next name, of `bytes` bytes with its slash, is written: either all remaining
 * names fit, or it is one of the first names. Otherwise it is omitted, and so are further names
 * until all remaining ones fit.
 */
static __always_inline bool has_room(struct look_path *p, __u32 bytes)
{
	if (p->at + p->left < LOOK_PATH_BYTES)
		return true;
	if (!p->cut && p->at + bytes <= LOOK_PATH_HEAD)
		return true;
	if (!p->cut)
		p->head = p->at;
	p->cut += bytes;
	return false;
}

/* Writes the i-th name from the root. Returns false after the last one. */
static __always_inline bool write_name(struct look_path *p, __u32 i)
{
	const struct dentry___path *dentry;
	__u32 place = p->count - 1 - i;
	__u64 at, n;

	if (i >= p->count)
		return false;
	place &= LOOK_PATH_PARTS - 1;
	dentry = (const void *)p->parts[place];
	n = p->bytes[place];
	if (has_room(p, n + 1)) {
		at = p->at & LOOK_PATH_MASK;
		p->text[at] = '/';
		if (bpf_probe_read_kernel(&p->text[at + 1], n & 0xff,
					  BPF_CORE_READ(dentry, d_name.name)))
			p->odd |= 1;
		p->at += n + 1;
	}
	p->left -= n + 1;
	p->sum -= BPF_CORE_READ(dentry, d_seq.seqcount.sequence);
	if (place == p->inner)
		p->point = p->cut ? LOOK_PATH_NO_POINT : p->at;
	return true;
}

/* Callback of bpf_loop: returning 1 ends the loop. */
static long write_part(__u32 i, void *context)
{
	struct looker **l = context;

	return !write_name(&(*l)->path, i);
}

/* Writes the names as text. */
static __always_inline void write_path(struct looker *l)
{
	bpf_loop(LOOK_PATH_PARTS, write_part, &l, 0);
	if (l->path.sum || l->path.odd & 1)
		l->path.end = LOOK_PATH_RENAMED;
}

static __always_inline void begin_path(struct look_path *p, const struct file___path *file,
				       const struct task_struct___path *task)
{
	__u64 vfsmount = (__u64)BPF_CORE_READ(file, f_path.mnt);

	p->dentry = (__u64)BPF_CORE_READ(file, f_path.dentry);
	p->mount = (__u64)mount_of(vfsmount);
	p->root_dentry = (__u64)BPF_CORE_READ(task, fs, root.dentry);
	p->root_mount = (__u64)mount_of((__u64)BPF_CORE_READ(task, fs, root.mnt));
	p->count = p->left = p->sum = p->odd = p->inner = p->crossed = 0;
	p->at = p->cut = p->head = p->point = 0;
}

/* Copies the result into the record. Only bytes of the path itself are copied. */
static __always_inline void tell_path(const struct look_path *p, struct look_on *on)
{
	__u64 n = p->at;

	on->path_end = p->end;
	if (p->end == LOOK_PATH_RENAMED)
		return;
	if (!n)
		on->path[0] = p->end == LOOK_PATH_WHOLE ? '/' : 0;
	asm volatile("" : "+r"(n));
	if (n > LOOK_PATH_BYTES - 1)
		n = LOOK_PATH_BYTES - 1;
	bpf_probe_read_kernel(on->path, n, p->text);
	on->path_cut = p->cut;
	on->path_head = p->head;
	on->point_bytes = p->point;
}

/*
 * Sets the path members of the file at `address`, and the members of its file system. A global
 * function: the verifier checks it once.
 */
__noinline int look_at_path(__u64 address)
{
	const struct file___path *file = (const void *)address;
	const struct super_block___path *sb;
	const struct dentry___path *dentry;
	struct looker *l = looker_get();
	struct look_on *on;

	if (!l)
		return 0;
	on = &l->record.on;
	begin_path(&l->path, file, (const void *)l->task);
	walk_path(l);
	write_path(l);
	tell_path(&l->path, on);
	dentry = BPF_CORE_READ(file, f_path.dentry);
	if (BPF_CORE_READ(dentry, d_parent) != dentry && !BPF_CORE_READ(dentry, d_hash.pprev))
		on->deleted = 1;
	sb = (const void *)BPF_CORE_READ((const struct file *)address, f_inode, i_sb);
	bpf_probe_read_kernel_str(on->fs, sizeof(on->fs), BPF_CORE_READ(sb, s_type, name));
	return 0;
}

#endif
