# SPDX-License-Identifier: BSD-2-Clause
"""Faults on real servers under load, for the blind trial: each server works, then one thing goes wrong. A fault says
which findings name it; it tells the agent nothing."""
import contextlib
import socket

from servers import PINNED, Disk, Nginx, Postgres, Redis, Service, forget

FAULTS = {}


def fault(*causes):
    """Registers a generator function: it begins with the server at work, yields once when that stands, makes the fault,
    and yields again; its end undoes what would keep the server from ending. `causes`: the first finding is one of them."""
    def register(function):
        FAULTS[function.__name__] = (contextlib.contextmanager(lambda t: steps(function(t))), causes)
        return function
    return register


def steps(generator):
    """The service that is at work, and what makes its fault."""
    service = next(generator)
    try:
        yield service, lambda: next(generator)
    finally:
        for _ in generator:
            pass


def burn(t):
    """Eight threads of another cgroup on the CPU to which the server is bound."""
    Service(t, "batch").start(*PINNED, t.binary("burn_cpu", "batch"), 30, 8)


# ---- PostgreSQL

def database(t, disk=None, pinned=False, options=()):
    """(service, postgres), which answers small queries all the time."""
    service = Service(t, "shop")
    for controller in ("cpu", "io", "memory"):
        service.place(controller)
    folder = disk.folder if disk else t.folder / "database"
    folder.mkdir(exist_ok=True)
    postgres = Postgres(service, folder, pinned=pinned, options=options)
    postgres.sql("CREATE TABLE stock AS SELECT i AS item, 100000 AS pieces FROM generate_series(1, 100) i")
    for _ in range(2):
        postgres.repeat("SELECT pieces FROM stock WHERE item = 7", 0.02)
    return service, postgres


@fault()
def postgres_well(t):
    service, _ = database(t)
    yield service
    yield


@fault("lock_wait", "lock_held", "lock_convoy")
def postgres_one_row(t):
    service, postgres = database(t)
    yield service
    for _ in range(3):
        postgres.session("BEGIN; UPDATE stock SET pieces = pieces - 1 WHERE item = 1; SELECT pg_sleep(0.3); COMMIT;\n" * 99)
    yield


@fault("lock_wait", "lock_held", "lock_convoy")
def postgres_table_locked(t):
    service, postgres = database(t)
    yield service
    postgres.session("BEGIN; LOCK TABLE stock; SELECT pg_sleep(30);\n")
    yield


@fault("sync", "sync_storm", "disk_limit", "disk")
def postgres_slow_commits(t):
    disk = Disk(t, 300)
    service, postgres = database(t, disk, options=("fsync=on", "synchronous_commit=on"))
    postgres.sql("CREATE TABLE sales (i int, pad text)")
    for _ in range(2):
        postgres.repeat("INSERT INTO sales VALUES (1, repeat('z', 900))", 0.02)
    yield service
    with disk.limited(service, 128 << 10, write=True):
        yield


@fault("disk_limit", "disk")
def postgres_slow_reads(t):
    disk = Disk(t, 300)
    service, postgres = database(t, disk)
    table = postgres.table("orders", 64)
    postgres.repeat("SELECT sum(length(pad)) FROM orders", 0.3)
    yield service
    with disk.limited(service, 1 << 20):
        forget(table)
        yield


@fault("memory_limit")
def postgres_small_memory(t):
    service, postgres = database(t)
    tables = [postgres.table("customers", 8), postgres.table("orders", 160)]
    for table in tables:
        forget(table)
    service.memory(32)
    postgres.repeat("SELECT sum(length(pad)) FROM customers", 0.2)
    yield service
    for _ in range(3):
        postgres.repeat("SELECT sum(length(pad)) FROM orders", 0.01)
    yield


COUNT = "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b;\n"


@fault("cpu_quota")
def postgres_small_quota(t):
    service, postgres = database(t)
    service.quota(30)
    yield service
    for _ in range(2):
        postgres.session(COUNT * 20)
    yield


@fault("cpu_neighbour")
def postgres_neighbour(t):
    service, postgres = database(t, pinned=True)
    postgres.repeat("SELECT count(*) FROM generate_series(1, 300000)", 0.02)
    yield service
    burn(t)
    yield


@fault("cpu_demand", "function")
def postgres_many_reports(t):
    service, postgres = database(t, pinned=True)
    yield service
    for _ in range(4):
        postgres.session(COUNT * 20)
    yield


# ---- Redis

def cache(t, keys=1000, rest_s=0.005, **options):
    """(service, redis), which answers 100 requests each 5 ms."""
    service = Service(t, "shop")
    for controller in ("cpu", "io"):
        service.place(controller)
    redis = Redis(service, keys=keys, **options)
    return service, redis, redis.traffic(100, rest_s)


@fault()
def redis_well(t):
    service, _, traffic = cache(t)
    yield service
    yield
    traffic.stop()


@fault("function")
def redis_keys(t):
    service, redis, traffic = cache(t, keys=1000000)
    yield service
    redis.command_line("-r", "100", "KEYS", "*")
    yield
    traffic.stop()


@fault("function")
def redis_script(t):
    service, redis, traffic = cache(t)
    yield service
    redis.command_line("-r", "100", "EVAL", "local n = 0; for i = 1, 30000000 do n = n + i % 7 end; return n", "0")
    yield
    traffic.stop()


@fault("cpu_quota")
def redis_small_quota(t):
    service, redis, traffic = cache(t, keys=1000000)
    service.quota(40)
    yield service
    redis.command_line("-r", "100", "KEYS", "*")
    yield
    traffic.stop()


@fault("cpu_neighbour")
def redis_neighbour(t):
    service, redis, traffic = cache(t, pinned=True)
    redis.flood()
    yield service
    burn(t)
    yield
    traffic.stop()


@fault("sync", "sync_storm", "disk_limit", "disk")
def redis_slow_log(t):
    disk = Disk(t, 200)
    service, redis, traffic = cache(t, options=("--appendonly", "yes", "--appendfsync", "always", "--dir", disk.folder))
    writers = [redis.traffic(1, 0.005, "SET", "key:1", "x" * 100) for _ in range(4)]
    yield service
    with disk.limited(service, 256 << 10, write=True):
        yield
    for each in (traffic, *writers):
        each.stop()


# ---- nginx

def proxy(t, **options):
    service = Service(t, "shop")
    for controller in ("cpu", "io"):
        service.place(controller)
    nginx = Nginx(service, delay_s=0, **options)
    nginx.get()
    return service, nginx, [nginx.traffic(0.01) for _ in range(4)]


def stop(traffic):
    for each in traffic:
        each.stop()


@fault()
def nginx_well(t):
    service, _, traffic = proxy(t)
    yield service
    yield
    stop(traffic)


@fault("peer")
def nginx_slow_upstream(t):
    service, nginx, traffic = proxy(t)
    yield service
    nginx.upstream.delay_s = 1
    yield
    nginx.upstream.delay_s = 0
    stop(traffic)


@fault("peer")
def nginx_silent_upstream(t):
    """A connection is taken, and nothing comes."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        service, nginx, traffic = proxy(t, others={"/report": f"127.0.0.1:{silent.getsockname()[1]}"})
        yield service
        asking = [nginx.ask("/report") for _ in range(3)]
        yield
        stop(traffic)
        for each in asking:
            each.close()


@fault("disk_limit", "disk")
def nginx_slow_files(t):
    disk = Disk(t, 300)
    for number in range(8):
        (disk.folder / f"film{number}").write_bytes(bytes(24 << 20))
    service, nginx, traffic = proxy(t, files=disk.folder)
    traffic += [nginx.traffic(0.05, f"/files/film{number}") for number in range(2)]
    yield service
    with disk.limited(service, 1 << 20):
        for path in disk.folder.glob("film*"):
            forget(path)
        yield
    stop(traffic)


@fault("cpu_quota")
def nginx_small_quota(t):
    (t.folder / "files").mkdir()
    (t.folder / "files" / "list.txt").write_text("".join(f"{i * i} {i}\n" for i in range(150000)))
    service, nginx, traffic = proxy(t, files=t.folder / "files")
    service.quota(20)
    yield service
    traffic += [nginx.traffic(0.01, "/files/list.txt") for _ in range(3)]
    yield
    stop(traffic)


@fault("cpu_neighbour")
def nginx_neighbour(t):
    (t.folder / "files").mkdir()
    (t.folder / "files" / "list.txt").write_text("".join(f"{i * i} {i}\n" for i in range(30000)))
    service, nginx, traffic = proxy(t, files=t.folder / "files", pinned=True)
    traffic += [nginx.traffic(0.01, "/files/list.txt") for _ in range(2)]
    yield service
    burn(t)
    yield
    stop(traffic)
