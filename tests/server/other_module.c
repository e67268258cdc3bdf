// A module of one command, of which nothing is ours: what the server does with it, it does with any.

#include <stddef.h>

static int (*get_api)(const char *, void *);

static int answer(void *ctx, void **argv, int argc) {
    static int (*reply_with_long_long)(void *, long long);
    (void)argv, (void)argc;
    if (reply_with_long_long == NULL)
        get_api("RedisModule_ReplyWithLongLong", &reply_with_long_long);
    return reply_with_long_long(ctx, 1);
}

int RedisModule_OnLoad(void *ctx, void **argv, int argc) {
    void (*set_module_attribs)(void *, const char *, int, int);
    int (*create_command)(void *, const char *, int (*)(void *, void **, int), const char *, int, int, int);
    (void)argv, (void)argc;
    get_api = ((void **)ctx)[0];
    get_api("RedisModule_SetModuleAttribs", &set_module_attribs);
    get_api("RedisModule_CreateCommand", &create_command);
    set_module_attribs(ctx, "other", 1, 1);
    return create_command(ctx, "other.answer", answer, "readonly", 0, 0, 0);
}
