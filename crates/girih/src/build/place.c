
// Where temporary arrays lie in the arena, largest first, each at the lowest offset where nothing lies that is needed at the
// same time. `life`: the first and the last step that names an array. `work`: room for `n` numbers, twice.
static uint64_t girih_place(int n, const uint64_t *bytes, const uint32_t (*life)[2], uint64_t *at, int *work) {
  int *order = work, *placed = work + n;
  uint64_t length = 0;
  for (int i = 0; i < n; i++) {
    int j = i;
    for (; j > 0; j--) {
      int other = order[j - 1];
      if (bytes[other] > bytes[i] || (bytes[other] == bytes[i] && life[other][0] <= life[i][0])) break;
      order[j] = other;
    }
    order[j] = i;
  }
  for (int k = 0; k < n; k++) {
    int i = order[k], j = k;
    uint64_t start = 0;
    for (int p = 0; p < k; p++) {
      int other = placed[p];
      if (life[i][0] > life[other][1] || life[other][0] > life[i][1]) continue;
      if (start + bytes[i] <= at[other]) break;
      uint64_t end = (at[other] + bytes[other] + 63) / 64 * 64;
      if (end > start) start = end;
    }
    at[i] = start;
    for (; j > 0 && at[placed[j - 1]] > start; j--) placed[j] = placed[j - 1];
    placed[j] = i;
    if (start + bytes[i] > length) length = start + bytes[i];
  }
  return length;
}
