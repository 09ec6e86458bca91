/* SPDX-License-Identifier: MIT */
#include "loader.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

enum { PAGE = 4096, SEGMENTS = 8 };

/* A word of an image that is written when it is made. */
struct word {
    uint64_t at;    /* offset in the image */
    uint64_t value; /* an address, or an offset in the image */
    enum { ADDRESS, OFFSET } kind;
};

struct sim_module {
    int fd;
    size_t bytes;                                  /* of an image */
    size_t variables, variable_bytes, given_bytes; /* the rest of them is zero */
    Elf64_Phdr segments[SEGMENTS];
    int segment_count;
    Elf64_Phdr tls;
    const char *file; /* mapped */
    size_t file_bytes;
    const char *names;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    struct word *words;
    size_t word_count;
    uint64_t constructors, constructor_count;
};

_Thread_local char sim_thread_variables[SIM_TLS_BYTES] __attribute__((aligned(64)));

/* Returns the bytes of the file for an address of the image. */
static const void *in_file(const struct sim_module *module, uint64_t address)
{
    for (int i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *at = &module->segments[i];
        if (address >= at->p_vaddr && address < at->p_vaddr + at->p_filesz) {
            return module->file + at->p_offset + (address - at->p_vaddr);
        }
    }
    sim_fail("the module has nothing at %#lx", (unsigned long)address);
}

static void read_segments(struct sim_module *module, const Elf64_Ehdr *header)
{
    const Elf64_Phdr *at = (const Elf64_Phdr *)(module->file + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++, at++) {
        if (at->p_type == PT_TLS) {
            module->tls = *at;
        }
        if (at->p_type == PT_LOAD) {
            sim_require(module->segment_count < SEGMENTS, "the module has too many segments");
            module->segments[module->segment_count++] = *at;
            module->bytes = (at->p_vaddr + at->p_memsz + PAGE - 1) & ~(uint64_t)(PAGE - 1);
        }
        if (at->p_type == PT_LOAD && (at->p_flags & PF_W) != 0) {
            sim_require(module->variables == 0, "the module has two segments of variables");
            module->variables = at->p_vaddr;
            module->variable_bytes = at->p_memsz;
            module->given_bytes = at->p_filesz;
        }
    }
}

static uint64_t tag(const Elf64_Dyn *dynamic, int64_t wanted)
{
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == wanted) {
            return dynamic->d_un.d_val;
        }
    }
    return 0;
}

static const Elf64_Dyn *find_dynamic(const struct sim_module *module, const Elf64_Ehdr *header)
{
    const Elf64_Phdr *at = (const Elf64_Phdr *)(module->file + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++, at++) {
        if (at->p_type == PT_DYNAMIC) {
            return (const Elf64_Dyn *)(module->file + at->p_offset);
        }
    }
    sim_fail("the module is not linked dynamically");
}

static struct word resolve_symbol(const struct sim_module *module, uint32_t index,
                                  void *(*resolve)(const char *))
{
    const Elf64_Sym *symbol = &module->symbols[index];
    const char *name = module->names + symbol->st_name;
    void *address;
    if (symbol->st_shndx != SHN_UNDEF) {
        return (struct word){.value = symbol->st_value, .kind = OFFSET};
    }
    address = resolve(name);
    sim_require(address != NULL || ELF64_ST_BIND(symbol->st_info) == STB_WEAK,
                "the simulation has no %s(): add it to tests/sim/calls.c", name);
    return (struct word){.value = (uintptr_t)address, .kind = ADDRESS};
}

static void add_relocations(struct sim_module *module, uint64_t address, uint64_t bytes,
                            void *(*resolve)(const char *))
{
    const Elf64_Rela *at = bytes == 0 ? NULL : in_file(module, address);
    for (size_t i = 0; i < bytes / sizeof *at; i++) {
        struct word word = {.value = (uint64_t)at[i].r_addend, .kind = OFFSET};
        uint32_t index = (uint32_t)ELF64_R_SYM(at[i].r_info);
        switch (ELF64_R_TYPE(at[i].r_info)) {
        case R_X86_64_RELATIVE:
            break;
        case R_X86_64_DTPMOD64: /* there is one module only: sim_image_tls() */
            word.kind = ADDRESS;
            break;
        case R_X86_64_DTPOFF64:
            word.value += index == 0 ? 0 : module->symbols[index].st_value;
            word.kind = ADDRESS;
            break;
        case R_X86_64_TPOFF64:
            word.value += index == 0 ? 0 : module->symbols[index].st_value;
            word.value += (uint64_t)(sim_thread_variables - (char *)__builtin_thread_pointer());
            word.kind = ADDRESS;
            break;
        case R_X86_64_64:
        case R_X86_64_GLOB_DAT:
        case R_X86_64_JUMP_SLOT:
            word = resolve_symbol(module, index, resolve);
            word.value += (uint64_t)at[i].r_addend;
            break;
        default:
            sim_fail("the module has a relocation of type %u",
                     (unsigned)ELF64_R_TYPE(at[i].r_info));
        }
        word.at = at[i].r_offset;
        module->words[module->word_count++] = word;
    }
}

struct sim_module *sim_module_open(const char *path, void *(*resolve)(const char *name))
{
    struct sim_module *module = sim_alloc(1, sizeof *module);
    const Elf64_Ehdr *header;
    const Elf64_Dyn *dynamic;
    struct stat status;
    module->fd = open(path, O_RDONLY | O_CLOEXEC);
    sim_require(module->fd >= 0 && fstat(module->fd, &status) == 0, "%s cannot be opened", path);
    module->file_bytes = (size_t)status.st_size;
    module->file = mmap(NULL, module->file_bytes, PROT_READ, MAP_PRIVATE, module->fd, 0);
    sim_require(module->file != MAP_FAILED, "%s cannot be read", path);
    header = (const Elf64_Ehdr *)module->file;
    sim_require(memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_machine == EM_X86_64,
                "%s is no shared object of x86-64", path);
    read_segments(module, header);
    dynamic = find_dynamic(module, header);
    module->names = in_file(module, tag(dynamic, DT_STRTAB));
    module->symbols = in_file(module, tag(dynamic, DT_SYMTAB));
    /* The table of names follows that of symbols. */
    module->symbol_count = (tag(dynamic, DT_STRTAB) - tag(dynamic, DT_SYMTAB)) / sizeof(Elf64_Sym);
    module->words =
        sim_alloc((tag(dynamic, DT_RELASZ) + tag(dynamic, DT_PLTRELSZ)) / sizeof(Elf64_Rela),
                  sizeof *module->words);
    add_relocations(module, tag(dynamic, DT_RELA), tag(dynamic, DT_RELASZ), resolve);
    add_relocations(module, tag(dynamic, DT_JMPREL), tag(dynamic, DT_PLTRELSZ), resolve);
    module->constructors = tag(dynamic, DT_INIT_ARRAY);
    module->constructor_count = tag(dynamic, DT_INIT_ARRAYSZ) / sizeof(void *);
    return module;
}

/*
 * A process may have 65,530 mappings on most hosts, and a run of thousands of ranks has as many
 * images. So an image is two mappings: what is only read, and the variables.
 */
static void map_variables(const struct sim_module *module, char *base, const Elf64_Phdr *at)
{
    uint64_t from = at->p_vaddr & ~(uint64_t)(PAGE - 1);
    void *map = mmap(base + from, at->p_vaddr + at->p_memsz - from, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    sim_require(map != MAP_FAILED, "an image cannot be mapped: %m");
    memcpy(base + at->p_vaddr, module->file + at->p_offset, at->p_filesz);
}

static void map_segments(const struct sim_module *module, char *base)
{
    size_t bytes = module->variables & ~(uint64_t)(PAGE - 1);
    void *map = mmap(base, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, module->fd, 0);
    sim_require(map != MAP_FAILED, "an image cannot be mapped: %m");
    for (int i = 0; i < module->segment_count; i++) {
        const Elf64_Phdr *at = &module->segments[i];
        if ((at->p_flags & PF_W) != 0) {
            map_variables(module, base, at);
        } else {
            sim_require(at->p_offset == at->p_vaddr && at->p_vaddr < bytes,
                        "the module is not in the order of its file");
        }
    }
}

void *sim_reserve(enum sim_range range, size_t bytes)
{
    void *wanted = (void *)((uintptr_t)range << 43);
    void *map = mmap(wanted, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    sim_require(map == wanted, "no %zu bytes of addresses at %p: %m", bytes, wanted);
    return map;
}

enum { IMAGES = 1 << 14 };

static struct sim_image *spares;
static int spare_count, spare_room;
static size_t image_count; /* in all */
static char *images;

static struct sim_image map_image(const struct sim_module *module)
{
    struct sim_image image = {.module = module};
    char *base;
    if (images == NULL) {
        images = sim_reserve(SIM_IMAGES, IMAGES * module->bytes);
    }
    sim_require(image_count < IMAGES, "too many images");
    base = images + image_count++ * module->bytes;
    map_segments(module, base);
    image.base = base;
    for (size_t i = 0; i < module->word_count; i++) {
        const struct word *word = &module->words[i];
        uint64_t value = word->value + (word->kind == OFFSET ? (uintptr_t)base : 0);
        memcpy(base + word->at, &value, sizeof value);
    }
    image.pristine = sim_alloc(1, module->given_bytes);
    memcpy(image.pristine, base + module->variables, module->given_bytes);
    return image;
}

void sim_image_make(const struct sim_module *module, struct sim_image *image)
{
    if (spare_count == 0) {
        *image = map_image(module);
        return;
    }
    *image = spares[--spare_count];
    memcpy(image->base + module->variables, image->pristine, module->given_bytes);
    memset(image->base + module->variables + module->given_bytes, 0,
           module->variable_bytes - module->given_bytes);
}

void sim_image_construct(const struct sim_image *image)
{
    const struct sim_module *module = image->module;
    void (*const *run)(void) = (void (*const *)(void))(void *)(image->base + module->constructors);
    for (uint64_t i = 0; i < module->constructor_count; i++) {
        run[i]();
    }
}

void sim_image_free(struct sim_image *image)
{
    if (spare_count == spare_room) {
        spares = sim_grow(spares, &spare_room, sizeof *spares);
    }
    spares[spare_count++] = *image;
    image->base = NULL;
}

void *sim_image_find(const struct sim_image *image, const char *name)
{
    const struct sim_module *module = image->module;
    for (size_t i = 1; i < module->symbol_count; i++) {
        const Elf64_Sym *symbol = &module->symbols[i];
        if (symbol->st_shndx != SHN_UNDEF && strcmp(module->names + symbol->st_name, name) == 0) {
            return image->base + symbol->st_value;
        }
    }
    return NULL;
}

void sim_image_tls(const struct sim_image *image, char *variables)
{
    const Elf64_Phdr *tls = &image->module->tls;
    sim_require(tls->p_memsz <= SIM_TLS_BYTES, "the module has %lu bytes of thread-local variables",
                (unsigned long)tls->p_memsz);
    memset(variables, 0, SIM_TLS_BYTES);
    memcpy(variables, image->module->file + tls->p_offset, tls->p_filesz);
}
