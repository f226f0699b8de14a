/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/prctl.h>

#include "tests/unit/ctl/command_testing.h"

#define RULE(name, match) "{\"name\":\"" name "\",\"match\":{" match "},\"on\":\"exec\"}"

static void write_rules(const char *elements)
{
	char text[1024];
	int bytes = snprintf(text, sizeof(text), "{\"version\":1,\n\"rules\":[%s]}", elements);

	write_file(text, (size_t)bytes);
}

/* With an agent that lists some matches. */
static void asks_an_agent(void **state)
{
	char line[200];

	write_rules(RULE("api", "\"comm\":\"node\"") ",\n" RULE("no", "\"comm\":\"no-such-proc\""));
	snprintf(line, sizeof(line), "rules check %s", file);
	assert_int_equal(
		run_with(line, OK("{\"ok\":true,\"count\":2,\"warnings\":[],\"matches\":[{"
				  "\"rule\":\"api\",\"pid\":9,\"comm\":\"node\",\"cgroup\":"
				  "\"/x\"}],\"matches_omitted\":7,\"cgroups_unreadable\":2}")),
		COMMAND_FINE);
	assert_has(exchange.request, "\"method\":\"rules.check\",\"params\":{\"text\":\"{");
	assert_has(out, "2 rules, no fault; nothing applied\n");
	assert_has(out,
		   "api   9    node  /x\n7 more not shown\n2 cgroups of these rules do not let ");
	/* With left-out matches the rules without one are not known. */
	assert_string_equal(err, "");
	snprintf(line, sizeof(line), "rules check --strict %s", file);
	assert_int_equal(
		run_with(line, OK("{\"ok\":true,\"count\":2,\"warnings\":[],\"matches\":[{"
				  "\"rule\":\"api\",\"pid\":9,\"comm\":\"node\",\"cgroup\":"
				  "\"/x\"}],\"matches_omitted\":0,\"cgroups_unreadable\":0}")),
		COMMAND_FAILED);
	assert_has(err, "rules.json:3:22: warning: /rules/1/match: \"no\" matches no process now");
	assert_null(strstr(err, "\"api\""));
	snprintf(line, sizeof(line), "rules check --json %s", file);
	assert_int_equal(
		run_with(line, OK("{\"ok\":true,\"count\":2,\"warnings\":[],\"matches\":[],"
				  "\"matches_omitted\":0,\"cgroups_unreadable\":0}")),
		COMMAND_FINE);
	assert_has(out, "{\"ok\":true,\"count\":2,\"warnings\":[{\"pointer\":\"/rules/0/match\"");
	assert_has(out, "\"matches\":[],\"matches_omitted\":0,\"cgroups_unreadable\":0}\n");
	/* An agent of another version may know less. */
	snprintf(line, sizeof(line), "rules check %s", file);
	assert_int_equal(run_with(line, NO("{\"code\":-32002,\"message\":\"1 fault\"}")),
			 COMMAND_FAILED);
	assert_has(err, "trocar: 1 fault\n");
}

/* A process with another name than the rule's, and one in another cgroup: this very one. */
static void names_near_misses(void **state)
{
	static const char none[] = OK("{\"ok\":true,\"count\":3,\"warnings\":[],\"matches\":[],"
				      "\"matches_omitted\":0,\"cgroups_unreadable\":0}");
	char line[200];

	prctl(PR_SET_NAME, "zq-nodejs");
	write_rules(RULE("a", "\"comm\":\"zq-node\"") "," RULE(
		"b",
		"\"comm\":\"zq-nodejs\",\"cgroup_prefix\":\"/x\"") "," RULE("c",
									    "\"comm\":\"zq-nodesj\""));
	snprintf(line, sizeof(line), "rules check %s", file);
	assert_int_equal(run_with(line, none), COMMAND_FINE);
	assert_has(err, "\"a\" matches no process now; did you mean \"comm\": \"zq-nodejs\"?\n");
	assert_has(
		err,
		"\"b\" matches no process now: some have the name \"zq-nodejs\", in other cgroups\n");
	assert_has(err, "\"c\" matches no process now; did you mean \"comm\": \"zq-nodejs\"?\n");
}

/* No agent is there, or none is wanted: the file alone decides. */
static void checks_without_an_agent(void **state)
{
	char line[300], expected[400];

	write_rules(RULE("api", "\"comm\":\"no*\""));
	snprintf(line, sizeof(line), "rules check --offline %s", file);
	assert_int_equal(run(line), COMMAND_FINE);
	assert_string_equal(out, "1 rule, no fault; nothing applied\n");
	snprintf(expected, sizeof(expected),
		 "%s:2:40: warning: /rules/0/match/comm: \"no*\" is a name with a '*' in it, not a "
		 "pattern; must be \"comm_prefix\": \"no\"\n",
		 file);
	assert_string_equal(err, expected);
	snprintf(line, sizeof(line), "rules check --offline --strict %s", file);
	assert_int_equal(run(line), COMMAND_FAILED);
	snprintf(line, sizeof(line), "rules check --json --socket=%s.none %s", path, file);
	assert_int_equal(run(line), COMMAND_FINE);
	assert_has(out, "\"line\":2,\"column\":40}],\"matches\":null}\n");
	assert_has(err, ".none (No such file or directory): is the service running?\n");
	close(listener);
	snprintf(line, sizeof(line), "rules check %s", file);
	assert_int_equal(run(line), COMMAND_FINE);
	assert_has(err, "trocar: matches were not asked for: no agent at ");
	assert_has(err, "(Connection refused): it has ended");
	/* A fault is a fault, with an agent or without. */
	write_rules(RULE("api", "\"comm\":7"));
	assert_int_equal(run(line), COMMAND_FAILED);
	assert_has(err, "rules.json:2:40: /rules/0/match/comm: is 7; must be ");
	assert_has(err, "\ntrocar: 1 fault\n");
	assert_string_equal(out, "");
	snprintf(line, sizeof(line), "rules check --json --offline %s", file);
	assert_int_equal(run(line), COMMAND_FAILED);
	assert_has(
		out,
		"{\"code\":-32002,\"message\":\"1 fault\",\"data\":{\"fault_count\":1,\"faults\":[");
	write_file("{\"a\":\"\xff\"}", 9);
	assert_int_equal(run(line), COMMAND_FAILED);
	assert_has(err, "rules.json:1:7: is not JSON");
	assert_int_equal(run("rules check --offline /nonexistent/rules"), COMMAND_FAILED);
	assert_int_equal(run("rules check"), COMMAND_USAGE);
}

UNIT_TESTS(rules_check)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(asks_an_agent, setup, teardown),
		cmocka_unit_test_setup_teardown(names_near_misses, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_without_an_agent, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
