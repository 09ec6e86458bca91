/* SPDX-License-Identifier: MIT */
/* The section of the library: its version, file and build options. */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "info.h"

#ifdef HAVE_VERBS
#define HAS_VERBS true
#else
#define HAS_VERBS false
#endif
#ifdef HAVE_RDMACM
#define HAS_RDMACM true
#else
#define HAS_RDMACM false
#endif
#ifdef HAVE_JANSSON
#define HAS_JANSSON true
#else
#define HAS_JANSSON false
#endif
#ifdef HAVE_PMIX
#define HAS_PMIX true
#else
#define HAS_PMIX false
#endif

const char *library_version(char text[32])
{
    const char *version = sluice_version();

    snprintf(text, 32, "%.*s", (int)strcspn(version, " "), version);
    return text;
}

/* Prints the file of the loaded library; a static one is part of the program. */
static void print_file(struct out *out)
{
    /* The function's address here may be that of a PLT stub in this program. */
    void *symbol = dlsym(RTLD_DEFAULT, "sluice_version");
    Dl_info found;
    const char *name;

    if (symbol == NULL || dladdr(symbol, &found) == 0 || found.dli_fname == NULL) {
        out_text(out, "linked", "linked", "static");
        out_null(out, "file", NULL, "none");
        out_null(out, "soname", NULL, "none");
        return;
    }
    name = strrchr(found.dli_fname, '/');
    out_text(out, "linked", NULL, "shared");
    out_text(out, "file", "file", found.dli_fname);
    out_text(out, "soname", "soname", name != NULL ? name + 1 : found.dli_fname);
}

static void print_option(struct out *out, const char *key, bool has, const char *lacks)
{
    out_flag(out, key, key, has, "%s", has ? "yes" : lacks);
}

void print_build(const struct facts *facts, struct out *out)
{
    char version[32];

    (void)facts;
    out_text(out, "library", "library", sluice_version());
    out_text(out, "library_version", NULL, library_version(version));
    out_text(out, "tool_version", "this tool", PACKAGE_VERSION);
    print_file(out);
    /* The options of the build of this tool, which is built with the library. */
    out_object(out, "options", "configured with");
    print_option(out, "verbs", HAS_VERBS, "no: soft is the only device");
    print_option(out, "rdmacm", HAS_RDMACM, "no: rdmacm: addresses cannot be used");
    print_option(out, "jansson", HAS_JANSSON, "no: neither host files nor --json");
    print_option(out, "pmix", HAS_PMIX, "no: exchanges go over TCP or PMI alone");
    print_option(out, "sodium", true, "");
    out_end(out);
}
