/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths as the runtimes make them, and paths that only look so. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>

#include "consumer/cgroup/container.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"

#define ID   "0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e1f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e"
#define ID2  "77d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e"
#define UID  "6fc4a17a-9b0a-4ab4-833e-7004a16f89ce"
#define UID_ "6fc4a17a_9b0a_4ab4_833e_7004a16f89ce"
#define HASH "99dcb84d2a34f7e338778606703258c4"

#define IDS(id)	      ",\"container_id\":\"" id "\""
#define POD(uid)      ",\"pod_uid\":\"" uid "\""
#define NAMES(object) ",\"container\":{" object "}"
#define RUNTIME(name) "\"runtime\":\"" name "\""
#define UNIT(name)    "\"unit\":\"" name "\""
#define UNNAMED                                                                                      \
	"\"runtime\":null,\"runtime_reason\":\"the cgroup's name identifies the container, not its " \
	"runtime\""

struct naming {
	const char *path, *json; /* what is written, without the braces */
};

/* What both functions write for a path, without the braces and with a comma before each key. */
static void check(const char *path, const char *wanted)
{
	struct container c = container_parse(path);
	struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	jsonw_bool(&w, "x", true);
	container_write_ids(&c, path, &w);
	container_write(&c, path, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	if (w.bytes != strlen(wanted) + 10 || memcmp(w.data + 9, wanted, strlen(wanted)))
		fail_msg("%s:\n  %.*s\n  is not {\"x\":true%s}", path, (int)w.bytes, w.data,
			 wanted);
	jsonw_done(&w);
}

static void check_all(const struct naming *samples, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(samples[i].path, samples[i].json);
}

#define CHECK(...)                                                        \
	do {                                                              \
		static const struct naming samples[] = { __VA_ARGS__ };   \
		check_all(samples, sizeof(samples) / sizeof(samples[0])); \
	} while (0)

static void test_docker(void **state)
{
	CHECK({ "/docker/" ID, IDS(ID) NAMES(RUNTIME("docker")) },
	      { "/system.slice/docker-" ID ".scope",
		IDS(ID) NAMES(RUNTIME("docker") "," UNIT("docker-" ID ".scope")) },
	      /* Rootless; a cgroup made within the container does not hide it. */
	      { "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID
		".scope/init/worker",
		IDS(ID) NAMES(RUNTIME("docker") "," UNIT("docker-" ID ".scope")) });
}

static void test_podman(void **state)
{
	CHECK({ "/machine.slice/libpod-" ID ".scope/container",
		IDS(ID) NAMES(RUNTIME("podman") "," UNIT("libpod-" ID ".scope")) },
	      { "/user.slice/user-1000.slice/user@1000.service/user.slice/"
		"user-libpod_pod_" ID2 ".slice/libpod-" ID ".scope/container",
		IDS(ID) NAMES(RUNTIME("podman") "," UNIT("libpod-" ID ".scope")) },
	      { "/libpod_parent/libpod-" ID, IDS(ID) NAMES(RUNTIME("podman")) },
	      { "/libpod_parent/" ID2 "/libpod-" ID, IDS(ID) NAMES(RUNTIME("podman")) },
	      /* The pod itself is a group of containers, none of them. */
	      { "/libpod_parent/" ID2, "" },
	      { "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/"
		"libpod-payload-" ID,
		IDS(ID) NAMES(RUNTIME("podman") "," UNIT("web.service")) },
	      { "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/runtime",
		NAMES(UNIT("web.service")) },
	      { "/machine.slice/libpod-conmon-" ID ".scope",
		NAMES(RUNTIME("podman") ",\"monitor_of\":\"" ID
					"\"," UNIT("libpod-conmon-" ID ".scope")) },
	      { "/libpod_parent/libpod-conmon-" ID,
		NAMES(RUNTIME("podman") ",\"monitor_of\":\"" ID "\"") });
}

static void test_containerd(void **state)
{
	CHECK({ "/default/" ID, IDS(ID) NAMES(RUNTIME("containerd")) },
	      { "/k8s.io/" ID, IDS(ID) NAMES(RUNTIME("containerd")) },
	      { "/system.slice/nerdctl-" ID ".scope",
		IDS(ID) NAMES(RUNTIME("containerd") "," UNIT("nerdctl-" ID ".scope")) },
	      /* Any namespace, or a --cgroup-parent: the id is sure, the runtime is not. */
	      { "/buildkit-jobs/" ID, IDS(ID) NAMES(UNNAMED) }, { "/a/b/" ID, "" });
}

static void test_kubernetes_cgroupfs(void **state)
{
	CHECK({ "/kubepods/burstable/pod" UID "/" ID,
		IDS(ID) POD(UID) NAMES(UNNAMED ",\"qos\":\"burstable\"") },
	      { "/kubepods/besteffort/pod" UID "/crio-" ID,
		IDS(ID) POD(UID) NAMES(RUNTIME("cri-o") ",\"qos\":\"besteffort\"") },
	      { "/kubepods/pod" UID "/" ID,
		IDS(ID) POD(UID) NAMES(UNNAMED ",\"qos\":\"guaranteed\"") },
	      { "/kubepods/pod" UID, POD(UID) NAMES("\"qos\":\"guaranteed\"") },
	      { "/kubepods/burstable/pod" HASH "/" ID,
		IDS(ID) POD(HASH) NAMES(UNNAMED ",\"qos\":\"burstable\"") },
	      { "/kubepods/burstable", "" }, { "/kubepods", "" });
}

#define SLICES "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/"

static void test_kubernetes_systemd(void **state)
{
	CHECK({ SLICES "cri-containerd-" ID ".scope",
		IDS(ID) POD(UID) NAMES(RUNTIME("containerd") ",\"qos\":\"burstable\"," UNIT(
			"cri-containerd-" ID ".scope")) },
	      { SLICES "crio-" ID ".scope/container",
		IDS(ID) POD(UID) NAMES(
			RUNTIME("cri-o") ",\"qos\":\"burstable\"," UNIT("crio-" ID ".scope")) },
	      { SLICES "crio-conmon-" ID ".scope",
		POD(UID) NAMES(RUNTIME("cri-o") ",\"monitor_of\":\"" ID
						"\",\"qos\":\"burstable\"," UNIT("crio-conmon-" ID
										 ".scope")) },
	      { SLICES "docker-" ID ".scope",
		IDS(ID) POD(UID) NAMES(
			RUNTIME("docker") ",\"qos\":\"burstable\"," UNIT("docker-" ID ".scope")) },
	      { "/kubepods.slice/kubepods-pod" HASH ".slice/cri-containerd-" ID ".scope",
		IDS(ID) POD(HASH) NAMES(RUNTIME("containerd") ",\"qos\":\"guaranteed\"," UNIT(
			"cri-containerd-" ID ".scope")) },
	      { "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice",
		POD(UID) NAMES("\"qos\":\"besteffort\"") },
	      /* The kubelet gave systemd's notation to a runtime that writes cgroups itself. */
	      { "/system.slice/containerd.service/kubepods-besteffort-pod" UID_
		".slice:cri-containerd:" ID,
		IDS(ID) POD(UID) NAMES(RUNTIME("containerd") ",\"qos\":\"besteffort\"," UNIT(
			"containerd.service")) });
}

/* The innermost container, the pod around it, the machine around that. */
static void test_nested(void **state)
{
	CHECK({ "/docker/" ID2 "/kubelet/kubepods/burstable/pod" UID "/" ID,
		IDS(ID) POD(UID) NAMES(UNNAMED ",\"qos\":\"burstable\"") },
	      { "/system.slice/docker-" ID2 ".scope/kubelet.slice/kubelet-kubepods.slice/"
		"kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" UID_
		".slice/cri-containerd-" ID ".scope",
		IDS(ID) POD(UID) NAMES(RUNTIME("containerd") ",\"qos\":\"besteffort\"," UNIT(
			"cri-containerd-" ID ".scope")) },
	      { "/system.slice/docker-" ID2 ".scope/system.slice/containerd.service",
		IDS(ID2) NAMES(RUNTIME("docker") "," UNIT("containerd.service")) },
	      { "/kubepods/burstable/pod" UID "/" ID2 "/docker/" ID,
		IDS(ID) POD(UID) NAMES(RUNTIME("docker") ",\"qos\":\"burstable\"") },
	      { "/docker/" ID2 "/docker/" ID, IDS(ID) NAMES(RUNTIME("docker")) },
	      { "/lxc.payload.build/docker/" ID,
		IDS(ID) NAMES(RUNTIME("docker") ",\"machine\":\"build\"") },
	      /* The id of the outer one would be wrong. */
	      { "/docker/" ID "/lxc/inner", NAMES(RUNTIME("lxc") ",\"machine\":\"inner\"") },
	      { "/docker/" ID2 "/libpod_parent/libpod-conmon-" ID,
		IDS(ID2) NAMES(RUNTIME("podman") ",\"monitor_of\":\"" ID "\"") },
	      { "/libpod_parent/libpod-conmon-" ID2 "/libpod-" ID,
		IDS(ID) NAMES(RUNTIME("podman")) });
}

static void test_systemd(void **state)
{
	CHECK({ "/system.slice/nginx.service", NAMES(UNIT("nginx.service")) },
	      { "/system.slice/system-getty.slice/getty@tty1.service",
		NAMES(UNIT("getty@tty1.service")) },
	      { "/system.slice/system-postgresql.slice/postgresql@15-main.service",
		NAMES(UNIT("postgresql@15-main.service")) },
	      { "/user.slice/user-1000.slice/user@1000.service/app.slice/"
		"app-gnome-org.gnome.Terminal-4242.scope",
		NAMES(UNIT("app-gnome-org.gnome.Terminal-4242.scope")) },
	      { "/user.slice/user-1000.slice/user@1000.service/app.slice",
		NAMES(UNIT("user@1000.service")) },
	      { "/user.slice/user-1000.slice/session-3.scope", NAMES(UNIT("session-3.scope")) },
	      { "/system.slice/system-systemd\\x2dfsck.slice/"
		"systemd-fsck@dev-disk-by\\x2duuid-AB12.service",
		NAMES(UNIT("systemd-fsck@dev-disk-by\\\\x2duuid-AB12.service")) },
	      /* A name that a file of the kernel has too is put behind '_'. */
	      { "/system.slice/_cpu.service", NAMES(UNIT("cpu.service")) },
	      { "/system.slice/proc-fs-nfsd.mount", NAMES(UNIT("proc-fs-nfsd.mount")) },
	      { "/init.scope", NAMES(UNIT("init.scope")) },
	      /* A service that parts its own processes. */
	      { "/system.slice/app.service/workers/3", NAMES(UNIT("app.service")) },
	      { "/system.slice", "" }, { "/", "" }, { "", "" });
}

static void test_machines(void **state)
{
	CHECK({ "/machine.slice/systemd-nspawn@web-1.service/payload/system.slice/a.service",
		NAMES(RUNTIME("systemd-nspawn") ",\"machine\":\"web-1\"," UNIT("a.service")) },
	      { "/machine.slice/machine-web.scope/payload/init.scope",
		NAMES(RUNTIME("machined") ",\"machine\":\"web\"," UNIT("init.scope")) },
	      { "/machine.slice/machine-qemu\\x2d3\\x2ddb.scope/libvirt/vcpu0",
		NAMES(RUNTIME("machined") ",\"machine\":\"qemu-3-db\"," UNIT(
			"machine-qemu\\\\x2d3\\\\x2ddb.scope")) },
	      { "/lxc.payload.web-01", NAMES(RUNTIME("lxc") ",\"machine\":\"web-01\"") },
	      { "/lxc.payload.mail/system.slice/postfix.service",
		NAMES(RUNTIME("lxc") ",\"machine\":\"mail\"," UNIT("postfix.service")) },
	      { "/lxc/101/ns", NAMES(RUNTIME("lxc") ",\"machine\":\"101\"") },
	      { "/lxc/outer/lxc/inner", NAMES(RUNTIME("lxc") ",\"machine\":\"inner\"") },
	      { "/lxc.monitor.web-01", NAMES(RUNTIME("lxc") ",\"monitor_of\":\"web-01\"") },
	      { "/lxc", "" }, { "/lxc.payload.", "" }, { "/lxc.pivot", "" });
}

/* Near misses: an id of another length or alphabet, a uid with its dashes elsewhere, a wrong place.
 */
static void test_not_ours(void **state)
{
	CHECK({ "/docker/" ID "0", "" }, { "/docker/0f3a5c7e9b1d", "" },
	      { "/docker/0F3A5C7E9B1D2F4A6C8E0B2D4F6A8C0E1F3A5C7E9B1D2F4A6C8E0B2D4F6A8C0E", "" },
	      { "/dockers/a/" ID, "" }, { "/x/mydocker/" ID, "" }, { "/x/docker-" ID, "" },
	      { "/x/docker-" ID ".scopes", "" }, { "/x/docker-" ID ".slice", "" }, { "/" ID, "" },
	      { "/system.slice/docker-.scope", NAMES(UNIT("docker-.scope")) },
	      { "/system.slice/docker.service", NAMES(UNIT("docker.service")) },
	      { "/kubepods/burstable/pod" UID_ "/x", "" }, { "/kubepods/pod" UID "0", "" },
	      { "/burstable/pod" UID, "" }, { "/x/pod" UID "/y/" ID, "" },
	      { "/kubepods/guaranteed/pod" UID, "" },
	      { "/kubepods.slice/kubepods-burstable-pod" UID ".slice", "" },
	      { "/kubepods.slice/xkubepods-burstable-pod" UID_ ".slice", "" },
	      { "/kubepods.slice/kubepods-burstable-pod" UID_, "" },
	      /* Names that no machine may have, and a scope that is not among machines. */
	      { "/machine.slice/machine-.scope", NAMES(UNIT("machine-.scope")) },
	      { "/machine.slice/machine-a-b.scope", NAMES(UNIT("machine-a-b.scope")) },
	      { "/machine.slice/machine-a\\x2.scope", NAMES(UNIT("machine-a\\\\x2.scope")) },
	      { "/machine.slice/machine-a\\x00b.scope", NAMES(UNIT("machine-a\\\\x00b.scope")) },
	      { "/system.slice/machine-web.scope", NAMES(UNIT("machine-web.scope")) },
	      { "/lxc/.hidden", "" }, { "/lxc.payload.a b", "" });
}

/* What an unprivileged user may name a cgroup in a hierarchy that was delegated to it. */
static void test_hostile(void **state)
{
	CHECK({ "/a/\"},{\"type\":\"x.service", "" }, { "/a/\x01\n.service", "" },
	      { "/a/\xff\xfe.scope", "" }, { "/a/.service", "" }, { "/a/_.service", "" },
	      { "//docker//" ID "//", IDS(ID) NAMES(RUNTIME("docker")) }, { "/docker/../" ID, "" },
	      { "/x.slice:", "" },
	      { "/.slice:cri-containerd:" ID, IDS(ID) NAMES(RUNTIME("containerd")) },
	      { "/x.slice:cri-containerd:" ID ":" ID2, "" }, { "/:::::", "" }, { "////", "" });
}

static void test_bounds(void **state)
{
	_cleanup_free_ char *path = malloc(70001);
	struct container c = container_parse(NULL), none = {};
	char unit[300], name[400];

	assert_memory_equal(&c, &none, sizeof(c));
	assert_non_null(path);
	/* Beyond the range of an offset nothing is read, however well it ends. */
	memset(path, 'a', 70000);
	strcpy(path + 70000 - 15, "/docker.service");
	path[0] = '/';
	c = container_parse(path);
	assert_memory_equal(&c, &none, sizeof(c));
	/* The last path that is read. */
	c = container_parse(path + 70000 - 65534);
	assert_int_equal(c.unit.bytes, 14);
	c = container_parse(path + 70000 - 65535);
	assert_int_equal(c.unit.bytes, 0);
	/* The longest unit, and one longer. */
	memset(unit, 'u', sizeof(unit));
	snprintf(name, sizeof(name), "/%.247s.service", unit);
	c = container_parse(name);
	assert_int_equal(c.unit.bytes, 255);
	snprintf(name, sizeof(name), "/%.248s.service", unit);
	c = container_parse(name);
	assert_int_equal(c.unit.bytes, 0);
	snprintf(name, sizeof(name), "/lxc/%.64s", unit);
	c = container_parse(name);
	assert_int_equal(c.machine.bytes, 64);
	snprintf(name, sizeof(name), "/lxc/%.65s", unit);
	c = container_parse(name);
	assert_int_equal(c.machine.bytes, 0);
}

/* Offsets, so that they hold for a copy of the path. */
static void test_offsets(void **state)
{
	const char *path = SLICES "cri-containerd-" ID ".scope";
	struct container c = container_parse(path);

	assert_int_equal(c.runtime, RUNTIME_CONTAINERD);
	assert_int_equal(c.qos, QOS_BURSTABLE);
	assert_int_equal(c.id.bytes, 64);
	assert_memory_equal(path + c.id.at, ID, 64);
	assert_int_equal(c.pod.bytes, 36);
	assert_memory_equal(path + c.pod.at, UID_, 36);
	assert_int_equal(c.unit.at + c.unit.bytes, strlen(path));
}

UNIT_TESTS(container)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_docker),
		cmocka_unit_test(test_podman),
		cmocka_unit_test(test_containerd),
		cmocka_unit_test(test_kubernetes_cgroupfs),
		cmocka_unit_test(test_kubernetes_systemd),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_systemd),
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
