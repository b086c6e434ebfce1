/* SPDX-License-Identifier: Apache-2.0 */
/* The program `takt`: loads the module that has the verb and goes on in there. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/libexec.h"
#include "daemon/takt_module.h"

/* A path of ours alone: no search path and nothing of the environment names what is loaded, since
 * root runs this, too: it is as safe as the folder that takt itself lies in. Calls into libraries
 * are bound when they are made, as those of any program are: most verbs make few of them. */
static void *load(const char *name)
{
	char dir[PATH_MAX], path[PATH_MAX + 16];
	void *module, *ret = NULL;

	takt_libexec_dir(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	module = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (module)
		ret = dlsym(module, TAKT_MODULE_MAIN);
	if (!ret)
		fprintf(stderr, "takt: a part of it cannot be loaded: %s\n", dlerror());
	return ret;
}

int main(int argc, char **argv)
{
	bool top = argc > 1 && strcmp(argv[1], "top") == 0;
	void *found = load(top ? "takt-top.so" : "takt-cli.so");
	int (*go_on)(int argc, char **argv);

	if (!found)
		return 69;
	memcpy(&go_on, &found, sizeof(go_on)); /* ISO C casts no object to a function */
	return go_on(argc, argv);
}
