/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel.h: every kernel structure and field that the programs read, and no others, declared by
 * hand. libbpf relocates each access by the BTF of the running kernel (CO-RE): only names and types
 * matter, not order and offsets. Sources:
 * include/linux/{sched,sched/signal,mm_types,fs,cgroup-defs,kernfs,path,bpf,net,tcp,rbtree}.h,
 * include/net/{sock,inet_connection_sock,inet_hashtables}.h, fs/eventpoll.c and kernel/kallsyms.c
 * of Linux 6.1 to 7.2.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_H
#define TROCAR_BPF_KERNEL_KERNEL_H

#include <linux/types.h>
#include <stdbool.h>

#define PF_EXITING  0x00000004u /* set before sched_process_exit fires (kernel/signal.c) */
#define PF_SIGNALED 0x00000400u /* a signal ends it: it writes a core dump, or waits for one */
#define PF_KTHREAD  0x00200000u

/*
 * Threads of a process that run only in the kernel: io_uring workers, and since 6.4 vhost workers
 * too (kernel/fork.c). Before 6.4 the bit of PF_USER_WORKER has no meaning and is never set.
 */
#define PF_IO_WORKER   0x00000010u
#define PF_USER_WORKER 0x00004000u

#define TASK_UNINTERRUPTIBLE 0x00000002u /* in __state */

#define NICE_0_PRIORITY 120 /* static_prio of a thread with nice 0 */

#define TASK_DEAD 0x00000080u /* in __state, as sched_switch passes it: the task's last switch */

/* Bits of psi_flags (include/linux/psi_types.h): in an I/O wait, and in a memory stall. */
#define TSK_IOWAIT   (1u << 0)
#define TSK_MEMSTALL (1u << 1)

/* File types in inode.i_mode. */
#define S_IFMT	 00170000
#define S_IFSOCK 0140000
#define S_IFCHR	 0020000
#define S_IFREG	 0100000
#define S_IFBLK	 0060000
#define S_IFDIR	 0040000
#define S_IFIFO	 0010000

/* Bit of thread_info.flags: a 32-bit process, which has other system call numbers. */
#if defined(__TARGET_ARCH_x86)
#define TIF_COMPAT (1ul << 29) /* TIF_ADDR32 */
#else
#define TIF_COMPAT (1ul << 22) /* TIF_32BIT */
#endif

#define VM_WRITE  0x00000002ul
#define VM_EXEC	  0x00000004ul
#define VM_SHARED 0x00000008ul

/* super_block.s_magic (include/uapi/linux/magic.h). */
#define TMPFS_MAGIC	0x01021994ul
#define HUGETLBFS_MAGIC 0x958458f6ul

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct list_head {
	struct list_head *next;
};

struct kernfs_node {
	__u64 id;
	const char *name;
};

struct cgroup_root {
	int hierarchy_id; /* 0: cgroup2, because cgrp_dfl_root is set up first */
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
	int level;
	struct cgroup *ancestors[1]; /* level + 1 entries, the root first; since 6.1 */
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct signal_struct {
	atomic_t live;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

/* Since 6.11 the times are separate members. */
struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	unsigned int i_nlink;
	struct super_block *i_sb;
	__s64 i_size;
	__u32 i_generation;
	__s64 i_mtime_sec;
	__s64 i_ctime_sec;
	__u32 i_mtime_nsec;
	__u32 i_ctime_nsec;
};

/* Linux 6.7 to 6.10. 6.6 has only __i_ctime. */
struct inode___underscored {
	struct timespec64 __i_mtime;
	struct timespec64 __i_ctime;
};

/* Linux 6.1 to 6.5. 6.6 has only i_mtime. */
struct inode___plain {
	struct timespec64 i_mtime;
	struct timespec64 i_ctime;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct in6_addr {
	__u8 bytes[16];
};

/* In the kernel these members are in anonymous unions and structs. */
struct sock_common {
	unsigned int skc_daddr, skc_rcv_saddr;
	unsigned short skc_dport; /* big endian */
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
};

struct socket {
	short type;
	struct file *file;
	struct sock *sk;
};

struct pipe_inode_info {
	unsigned int head, tail, max_usage; /* in buffers */
};

struct inet_bind_bucket {
	signed char fastreuse; /* negative: connect(2) chose the port */
};

struct inet_connection_sock {
	struct inet_bind_bucket *icsk_bind_hash;
	struct {
		__u32 lrcvtime; /* jiffy in which data last arrived */
	} icsk_ack;
};

struct tcp_sock {
	__u32 lsndtime;	  /* jiffy in which data was last sent */
	__u32 rcv_tstamp; /* jiffy of the last acknowledgement */
	__u32 snd_wl1;	  /* sequence number of the segment that arrived last */
	__u32 rcv_nxt;
	__u32 packets_out;
	__u32 data_segs_in, data_segs_out;
};

struct rb_node {
	struct rb_node *rb_right, *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct wait_queue_head {
	struct list_head head;
};

struct wait_queue_entry {
	void *private; /* the task */
	struct list_head entry;
};

struct eventpoll {
	struct wait_queue_head wq; /* threads in epoll_wait */
	struct rb_root_cached rbr;
};

struct epoll_filefd {
	struct file *file;
	int fd;
};

struct epitem {
	struct rb_node rbn; /* in an anonymous union in the kernel */
	struct epoll_filefd ffd;
	struct eventpoll *ep;
};

/* An anonymous struct in arch/{x86,arm64}/include/asm/mmu.h. */
typedef struct {
	void *vdso;
} mm_context_t;

struct maple_tree {
	void *ma_root;
};

struct mm_struct {
	mm_context_t context;
	struct maple_tree mm_mt;
	int map_count;
	void *pgd;
	struct file *exe_file;
	unsigned long start_code, end_code;
	unsigned long start_stack; /* where the main thread's stack begins, below its arguments */
	unsigned long start_brk, brk; /* the heap */
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase; /* the thread pointer at the last switch to the task */
};
#endif

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
	struct mm_struct *vm_mm;
	const void *vm_ops;
};

struct anon_vma_name {
	char name[1]; /* PR_SET_VMA_ANON_NAME: at most 80 bytes with the NUL */
};

/* With CONFIG_ANON_VMA_NAME. Until 6.2 it shares its storage with a member of file mappings. */
struct vm_area_struct___named {
	struct anon_vma_name *anon_name;
};

/* The thread_info in every task: arch/{x86,arm64}/include/asm/thread_info.h. */
struct thread_info {
	unsigned long flags;
	unsigned int status; /* x86 */
	__u32 cpu;
};

/* The run queue of the CPU on which the task runs or last ran. */
struct rq {
	__u64 clock; /* when the scheduler last read the clock: at each switch */
};

/* With CONFIG_FAIR_GROUP_SCHED. */
struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

/* With CONFIG_SCHED_INFO. Times are on the clock of the task's run queue, in ns. */
struct sched_info {
	unsigned long pcount;		 /* times that the task got a CPU */
	unsigned long long run_delay;	 /* total time that it waited for a CPU */
	unsigned long long last_arrival; /* when it last got a CPU */
	unsigned long long last_queued;	 /* when it began to wait for a CPU; 0: it does not wait */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	void *stack;
	unsigned char on_cpu; /* an int until 7.0, 0 or 1: read its low byte */
	int exit_state;
	unsigned int psi_flags;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned long nvcsw; /* times that it went to sleep */
	struct files_struct *files;
	__u64 start_time; /* CLOCK_MONOTONIC */
	unsigned int flags;
	int pid;
	int tgid;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1; /* set from before an I/O wait until the task runs again */
	unsigned int frozen : 1;
	unsigned long jobctl;
	struct task_struct *parent; /* of a traced thread: its tracer */
	__u64 start_boottime;
	__u64 self_exec_id; /* increases with each execve, equal in all threads (fs/exec.c) */
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct signal_struct *signal;
	const struct cred *real_cred;
	struct css_set *cgroups;
	unsigned long sas_ss_sp; /* sigaltstack(2) */
	unsigned long sas_ss_size;
#if defined(__TARGET_ARCH_x86)
	struct thread_struct thread;
#endif
	char comm[16];
};

/* Bit of thread_info.status: a 32-bit system call (x86). */
#define TS_COMPAT 0x2u

/*
 * More members that the thread sampler reads. Read them with BPF_CORE_READ only, because newer
 * verifiers refuse plain loads of some of them.
 */
struct task_struct___look {
	int static_prio; /* 120 plus its nice value */
	struct thread_info thread_info;
	unsigned int __state;
	int on_cpu;
	int exit_state;
	unsigned int psi_flags; /* only with CONFIG_PSI */
	unsigned long nvcsw, nivcsw;
	struct sched_info sched_info; /* only with CONFIG_SCHED_INFO */
	struct files_struct *files;
};

/*
 * The user-mode registers (bpf_task_pt_regs): arch/x86/include/asm/ptrace.h,
 * arch/arm64/include/asm/ptrace.h.
 */
struct pt_regs {
#if defined(__TARGET_ARCH_x86)
	unsigned long r10, bp, dx, si, di, orig_ax, ip, sp;
#else
	__u64 regs[31];
	__u64 sp, pc;
	__u64 orig_x0;
	int syscallno;
#endif
};

/* More members that the lock-wait programs read (bpf/locks/lock.bpf.c). */
struct pt_regs___lock {
#if defined(__TARGET_ARCH_x86)
	unsigned long di, si, dx, orig_ax, sp;
#else
	__u64 regs[31];
	__u64 sp;
	__u64 orig_x0;
	int syscallno;
#endif
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
};

struct signal_struct___lock {
	struct sigpending shared_pending;
};

struct thread_info___lock {
	unsigned long flags;
	struct {
		__u32 count;
	} preempt; /* arm64 */
};

struct task_struct___lock {
	struct thread_info___lock thread_info;
	unsigned int __state;
	void *stack;
	unsigned int flags;
	int on_cpu;
	int exit_state;
	sigset_t blocked;
	struct sigpending pending;
	struct signal_struct___lock *signal;
};

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id; /* identifies one pass from its begin to its end */
	__u64 seq_num;	  /* number of the object, from 0 */
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__cgroup {
	struct bpf_iter_meta *meta;
	struct cgroup *cgroup; /* NULL after the last one */
};

struct bpf_iter__bpf_link {
	struct bpf_iter_meta *meta;
	struct bpf_link *link; /* NULL after the last one */
};

struct kallsym_iter {
	unsigned long value;
	char type;
	char name[512]; /* KSYM_NAME_LEN since 6.1 */
	char module_name[56];
};

struct bpf_iter__ksym {
	struct bpf_iter_meta *meta;
	struct kallsym_iter *ksym;
};

#pragma clang attribute pop

/* State of the open-coded iterator, opaque; since Linux 6.7 (kernel/bpf/task_iter.c). */
struct bpf_iter_task_vma {
	__u64 opaque[1];
} __attribute__((aligned(8)));

/*
 * The word of a tick's context that distinguishes user mode from kernel mode. struct
 * bpf_perf_event_data begins with the registers of the user ABI (uapi asm/ptrace.h), so these
 * offsets are fixed: cs of struct pt_regs on x86-64, pstate of struct user_pt_regs on arm64. On x86
 * the verifier demands a read of eight bytes, although a kernel with FRED declares cs as 16 bits.
 * After the registers comes sample_period: the time in ns that a tick of CPU_CLOCK counts for.
 */
#if defined(__TARGET_ARCH_x86)
#define TICK_MODE_OFFSET   136
#define TICK_PERIOD_OFFSET 168
#define tick_is_user(word) (((word)&3) == 3)
#elif defined(__TARGET_ARCH_arm64)
#define TICK_MODE_OFFSET   264
#define TICK_PERIOD_OFFSET 272
#define tick_is_user(word) (((word)&0xf) == 0)
#else
#error "unknown target architecture"
#endif

struct bpf_perf_event_data;

#endif
