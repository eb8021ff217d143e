#include "storage/storage.h"
#include <errno.h>
int storage_sqlite_open(struct storage **s, const char *d) { (void)s; (void)d; return -ENOSYS; }
