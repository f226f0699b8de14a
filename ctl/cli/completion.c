/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/completion.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "ctl/cli/options.h"
#include "shared/tools/macro.h"

/* The cgroups of a host, two levels deep, below the folder with the cgroup2 hierarchy. */
#define CGROUPS                                                                               \
	"find /sys/fs/cgroup/unified /sys/fs/cgroup -mindepth 1 -maxdepth 2 -type d -printf " \
	"\"/%P\\n\" 2>/dev/null"
#define PROCESSES	       "find /proc -maxdepth 1 -name \"[1-9]*\" -printf \"%f\\n\""
#define SIGNAL(id, json, help) " " json
static const char signals[] = "auto"
#include "shared/abi/signals.def"
	;
#undef SIGNAL

/* The kinds of values and arguments. */
enum kind {
	NOTHING,
	FILES,
	FOLDERS,
	WORDS,	/* `words` of struct values */
	LISTED, /* the output of the command `words` */
	TOPICS, /* the commands themselves */
};

struct values {
	enum kind kind;
	const char *words;
};

/* Values by their name in the help. The first row of a name counts. */
static const struct {
	const char *name;
	struct values values;
} kinds[] = {
	{ "A", { FILES } },
	{ "B", { FILES } },
	{ "CGROUP", { LISTED, CGROUPS } },
	{ "COMMAND", { TOPICS } },
	{ "DIR", { FOLDERS } },
	{ "FILE", { FILES } },
	{ "LIST", { WORDS, signals } },
	{ "PATH", { FILES } },
	{ "PID", { LISTED, PROCESSES } },
	{ "RULES", { FILES } },
	{ "SHELL", { WORDS, "bash zsh fish" } },
	{ "SIGNAL", { WORDS, signals } },
};

/* Values by option, if the name of the option's value is less precise. */
static const struct {
	const char *option, *name;
} precise[] = {
	{ "cgroup", "CGROUP" },
	{ "signal", "SIGNAL" },
};

/* Returns the values of the first name in `text`: "[PID] SECONDS" begins with a process. */
static struct values find_values(const char *text)
{
	size_t from = strcspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), bytes = 0;

	while (isupper((unsigned char)text[from + bytes]))
		bytes++;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i].name) == bytes &&
		    strncmp(kinds[i].name, text + from, bytes) == 0)
			return kinds[i].values;
	return (struct values){ NOTHING };
}

static struct values values_of(const struct option_row *row)
{
	if (row->choices)
		return (struct values){ WORDS, row->choices };
	for (size_t i = 0; i < ARRAY_SIZE(precise); i++)
		if (strcmp(precise[i].option, row->name) == 0)
			return find_values(precise[i].name);
	return find_values(row->value);
}

static struct values arguments_of(const struct completion_command *command)
{
	return command->arguments ? find_values(command->arguments) : (struct values){ NOTHING };
}

/* Prints `text`, with a backslash before each character of `special`. */
static void put_escaped(FILE *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

/* Prints words that are separated by '|' or a blank, with blanks between them. */
static void put_words(FILE *out, const char *words)
{
	for (; *words; words++)
		fputc(*words == '|' ? ' ' : *words, out);
}

/* Returns whether the command is the first one with its first word. */
static bool is_first(const struct completion_command *commands, size_t i)
{
	return i == 0 || strcmp(commands[i].words[0], commands[i - 1].words[0]) != 0;
}

/* ---- bash */

static const char bash_head[] =
	"# Completion of `trocar` for bash: made by `trocar completion bash`.\n"
	"_trocar_lines() {\n"
	"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	"}\n\n"
	"_trocar_files() {\n"
	"\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
	"\tcompopt -o filenames 2>/dev/null\n"
	"}\n\n"
	"# The values of the option $1; false where it has none.\n"
	"_trocar_value() {\n"
	"\tcase $1 in\n";

static const char bash_middle[] =
	"\t*) return 1 ;;\n"
	"\tesac\n"
	"}\n\n"
	"_trocar() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} option='' word words=() i\n"
	"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	"\t\tword=${COMP_WORDS[i]}\n"
	"\t\tif [[ $option && $word == = ]]; then\n"
	"\t\t\tcontinue\n"
	"\t\telif [[ $option ]]; then\n"
	"\t\t\toption=''\n"
	"\t\telif [[ $word == -* ]]; then\n"
	"\t\t\t! _trocar_value \"$word\" || option=$word\n"
	"\t\telse\n"
	"\t\t\twords+=(\"$word\")\n"
	"\t\tfi\n"
	"\tdone\n"
	"\t[[ ! $option || $cur != = ]] || cur=''\n"
	"\tCOMPREPLY=()\n"
	"\tif [[ $option ]]; then\n"
	"\t\t_trocar_value \"$option\"\n"
	"\t\treturn 0\n"
	"\tfi\n"
	"\tcase \"${words[*]:0:2} \" in\n";

static void bash_values(struct values values, FILE *out)
{
	if (values.kind == FILES || values.kind == FOLDERS) {
		fputs(values.kind == FILES ? "_trocar_files -f" : "_trocar_files -d", out);
	} else if (values.kind == LISTED) {
		fprintf(out, "_trocar_lines \"$(%s)\"", values.words);
	} else if (values.kind == WORDS || values.kind == TOPICS) {
		fputs("_trocar_lines '", out);
		put_words(out, values.kind == WORDS ? values.words : "");
		fputc('\'', out);
	} else {
		fputc(':', out);
	}
}

static void bash_options(uint64_t bits, FILE *out)
{
	const struct option_table *table = options_table();
	const char *join = "";

	for (size_t i = 0; i < table->n_rows; i++) {
		if (!(table->rows[i].users & bits))
			continue;
		fprintf(out, "%s--%s", join, table->rows[i].name);
		join = " ";
	}
}

/* Prints the first words, or the second words of the commands that begin with `first`. */
static void put_names(const struct completion_command *commands, size_t n, const char *first,
		      FILE *out)
{
	const char *join = "";

	for (size_t i = 0; i < n; i++) {
		const char *name = commands[i].words[first ? 1 : 0];

		if (first ? strcmp(commands[i].words[0], first) != 0 || !name
			  : !is_first(commands, i))
			continue;
		fprintf(out, "%s%s", join, name);
		join = " ";
	}
}

static void bash_command(const struct completion_command *commands, size_t n, size_t i, FILE *out)
{
	const struct completion_command *c = &commands[i];
	struct values values = arguments_of(c);

	fprintf(out, "\t'%s %s%s'*)\n\t\tif [[ $cur == -* ]]; then\n\t\t\t_trocar_lines '",
		c->words[0], c->words[1] ? c->words[1] : "", c->words[1] ? " " : "");
	bash_options(c->options, out);
	fputs("'\n\t\telse\n\t\t\t", out);
	if (values.kind == TOPICS) {
		fputs("_trocar_lines '", out);
		put_names(commands, n, NULL, out);
		fputc('\'', out);
	} else {
		bash_values(values, out);
	}
	fputs("\n\t\tfi\n\t\t;;\n", out);
}

static void print_bash(const struct completion_command *commands, size_t n, FILE *out)
{
	const struct option_table *table = options_table();

	fputs(bash_head, out);
	for (size_t i = 0; i < table->n_rows; i++) {
		if (!table->rows[i].value && !table->rows[i].choices)
			continue;
		fprintf(out, "\t--%s) ", table->rows[i].name);
		bash_values(values_of(&table->rows[i]), out);
		fputs(" ;;\n", out);
	}
	fputs(bash_middle, out);
	for (size_t i = 0; i < n; i++)
		bash_command(commands, n, i, out);
	for (size_t i = 0; i < n; i++) {
		if (!commands[i].words[1] || !is_first(commands, i))
			continue;
		fprintf(out, "\t'%s '*) _trocar_lines '", commands[i].words[0]);
		put_names(commands, n, commands[i].words[0], out);
		fputs("' ;;\n", out);
	}
	fputs("\t' '*) _trocar_lines '", out);
	put_names(commands, n, NULL, out);
	fputs("' ;;\n\tesac\n}\ncomplete -F _trocar trocar\n", out);
}

/* ---- zsh: text in single quotes; an apostrophe leaves and enters them again */

static void zsh_text(const char *text, const char *special, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else
			put_escaped(out, (const char[]){ *text, '\0' }, special);
	}
}

/* Prints the part of a specification that describes the word: ":PATH:_files". */
static void zsh_values(const char *name, struct values values, FILE *out)
{
	fprintf(out, ":%s:", name);
	if (values.kind == FILES)
		fputs("_files", out);
	else if (values.kind == FOLDERS)
		fputs("_files -/", out);
	else if (values.kind == TOPICS)
		fputs("_trocar_commands", out);
	else if (values.kind == LISTED)
		fprintf(out, "{ compadd -- ${(f)\"$(%s)\"} }", values.words);
	else if (values.kind == WORDS) {
		fputc('(', out);
		put_words(out, values.words);
		fputc(')', out);
	} else {
		fputc(' ', out);
	}
}

static void zsh_options(const struct completion_command *command, FILE *out)
{
	const struct option_table *table = options_table();

	for (size_t i = 0; i < table->n_rows; i++) {
		const struct option_row *row = &table->rows[i];
		bool valued = row->value || row->choices;

		if (!(row->users & command->options))
			continue;
		fprintf(out, " \\\n\t\t\t'%s--%s%s[", row->times ? "*" : "", row->name,
			valued ? "=" : "");
		zsh_text(row->help, "[]:\\", out);
		fputc(']', out);
		if (valued)
			zsh_values(row->value, values_of(row), out);
		fputc('\'', out);
	}
}

static void zsh_command(const struct completion_command *c, FILE *out)
{
	fprintf(out, "\t\t'%s%s%s') _arguments", c->words[0], c->words[1] ? " " : "",
		c->words[1] ? c->words[1] : "");
	zsh_options(c, out);
	if (c->arguments) {
		fputs(" \\\n\t\t\t'*", out);
		zsh_values("argument", arguments_of(c), out);
		fputc('\'', out);
	}
	fputs(" ;;\n", out);
}

/*
 * Prints a function that offers names with their help: the first words, or the words after `first`.
 */
static void zsh_names(const struct completion_command *commands, size_t n, const char *first,
		      FILE *out)
{
	fprintf(out, "_trocar_%s() {\n\tlocal -a names=(\n", first ? first : "commands");
	for (size_t i = 0; i < n; i++) {
		const char *name = commands[i].words[first ? 1 : 0];

		if (first ? strcmp(commands[i].words[0], first) != 0 || !name
			  : !is_first(commands, i))
			continue;
		fprintf(out, "\t\t'%s:", name);
		zsh_text(commands[i].help, ":\\", out);
		fputs("'\n", out);
	}
	fputs("\t)\n\t_describe command names\n}\n\n", out);
}

static void print_zsh(const struct completion_command *commands, size_t n, FILE *out)
{
	fputs("#compdef trocar\n"
	      "# Completion of `trocar` for zsh: made by `trocar completion zsh`.\n",
	      out);
	zsh_names(commands, n, NULL, out);
	for (size_t i = 0; i < n; i++)
		if (commands[i].words[1] && is_first(commands, i))
			zsh_names(commands, n, commands[i].words[0], out);
	fputs("_trocar() {\n"
	      "\twhile ((CURRENT > 2)) && [[ $words[2] == -* ]]; do\n"
	      "\t\tshift words\n\t\t((CURRENT--))\n\tdone\n"
	      "\tlocal command=$words[2]\n"
	      "\tif ((CURRENT == 2)); then\n\t\t_trocar_commands\n\t\treturn\n\tfi\n"
	      "\tshift words\n\t((CURRENT--))\n"
	      "\tif (($+functions[_trocar_$command])); then\n"
	      "\t\tif ((CURRENT == 2)); then\n\t\t\t_trocar_$command\n\t\t\treturn\n\t\tfi\n"
	      "\t\tcommand+=\" $words[2]\"\n\t\tshift words\n\t\t((CURRENT--))\n"
	      "\tfi\n"
	      "\tcase $command in\n",
	      out);
	for (size_t i = 0; i < n; i++)
		zsh_command(&commands[i], out);
	fputs("\tesac\n}\n\ncompdef _trocar trocar\n", out);
}

/* ---- fish */

static const char fish_head[] =
	"# Completion of `trocar` for fish: made by `trocar completion fish`.\n"
	"function __trocar_words\n"
	"    for word in (commandline -opc)[2..-1]\n"
	"        string match -q -- '-*' $word; or echo $word\n"
	"    end\n"
	"end\n\n"
	"# Whether the words so far begin with these.\n"
	"function __trocar_in\n"
	"    set -l words (__trocar_words)\n"
	"    set -l n (count $argv)\n"
	"    test (count $words) -ge $n; and test \"$words[1..$n]\" = \"$argv\"\n"
	"end\n\n"
	"# Whether they are these and no more.\n"
	"function __trocar_at\n"
	"    test (count (__trocar_words)) -eq (count $argv); and begin\n"
	"        test (count $argv) -eq 0; or __trocar_in $argv\n"
	"    end\n"
	"end\n\n"
	"complete -c trocar -f\n";

static void fish_text(const char *text, FILE *out)
{
	fputc('\'', out);
	put_escaped(out, text, "'\\");
	fputc('\'', out);
}

/* Prints the switches that describe the word, and " -x" or " -r" if one is required. */
static void fish_values(struct values values, bool must, FILE *out)
{
	if (values.kind == FILES || values.kind == FOLDERS) {
		fputs(must ? " -r" : "", out);
		fputs(values.kind == FILES ? " -F" : " -a '(__fish_complete_directories)'", out);
		return;
	}
	fputs(must ? " -x" : "", out);
	if (values.kind == LISTED) {
		fprintf(out, " -a '(%s)'", values.words);
	} else if (values.kind == WORDS) {
		fputs(" -a '", out);
		put_words(out, values.words);
		fputc('\'', out);
	}
}

static void fish_command(const struct completion_command *commands, size_t n, size_t i, FILE *out)
{
	const struct option_table *table = options_table();
	const struct completion_command *c = &commands[i];
	char in[64];

	snprintf(in, sizeof(in), "'__trocar_in %s%s%s'", c->words[0], c->words[1] ? " " : "",
		 c->words[1] ? c->words[1] : "");
	for (size_t row = 0; row < table->n_rows; row++) {
		const struct option_row *o = &table->rows[row];

		if (!(o->users & c->options))
			continue;
		fprintf(out, "complete -c trocar -n %s -l %s -d ", in, o->name);
		fish_text(o->help, out);
		if (o->value || o->choices)
			fish_values(values_of(o), true, out);
		fputc('\n', out);
	}
	if (!c->arguments)
		return;
	fprintf(out, "complete -c trocar -n %s", in);
	if (arguments_of(c).kind == TOPICS) {
		fputs(" -a '", out);
		put_names(commands, n, NULL, out);
		fputc('\'', out);
	}
	fish_values(arguments_of(c), false, out);
	fputc('\n', out);
}

static void print_fish(const struct completion_command *commands, size_t n, FILE *out)
{
	fputs(fish_head, out);
	for (size_t i = 0; i < n; i++) {
		if (is_first(commands, i)) {
			fprintf(out, "complete -c trocar -n __trocar_at -a %s -d ",
				commands[i].words[0]);
			fish_text(commands[i].words[1] ? commands[i].words[0] : commands[i].help,
				  out);
			fputc('\n', out);
		}
		if (commands[i].words[1]) {
			fprintf(out, "complete -c trocar -n '__trocar_at %s' -a %s -d ",
				commands[i].words[0], commands[i].words[1]);
			fish_text(commands[i].help, out);
			fputc('\n', out);
		}
		fish_command(commands, n, i, out);
	}
}

int completion_print(const char *shell, const struct completion_command *commands, size_t n,
		     FILE *out)
{
	static const struct {
		const char *name;
		void (*print)(const struct completion_command *commands, size_t n, FILE *out);
	} shells[] = {
		{ "bash", print_bash },
		{ "zsh", print_zsh },
		{ "fish", print_fish },
	};

	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		if (strcmp(shells[i].name, shell) != 0)
			continue;
		shells[i].print(commands, n, out);
		return 0;
	}
	return -EINVAL;
}
