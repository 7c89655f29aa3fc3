
// Ranges of integers, by which the facts that a fast version relies on are tested; their ends saturate.
typedef int girih_wide __attribute__((mode(TI)));
typedef struct girih_range { girih_wide lo, hi; } girih_range;

#define GIRIH_LEAST ((girih_wide)1 << 127)
#define GIRIH_MOST (~GIRIH_LEAST)

GIRIH_HELPER girih_wide girih_sat_add(girih_wide a, girih_wide b) {
  girih_wide r;
  return __builtin_add_overflow(a, b, &r) ? (a < 0 ? GIRIH_LEAST : GIRIH_MOST) : r;
}
GIRIH_HELPER girih_wide girih_sat_mul(girih_wide a, girih_wide b) {
  girih_wide r;
  return __builtin_mul_overflow(a, b, &r) ? ((a < 0) == (b < 0) ? GIRIH_MOST : GIRIH_LEAST) : r;
}
GIRIH_HELPER girih_wide girih_negated(girih_wide a) { return a == GIRIH_LEAST ? GIRIH_MOST : -a; }
GIRIH_HELPER girih_wide girih_floor(girih_wide a, girih_wide b) { return a / b - (a % b < 0); }
GIRIH_HELPER girih_range girih_between(girih_wide lo, girih_wide hi) { return (girih_range){lo, hi}; }
GIRIH_HELPER girih_range girih_corners(girih_wide a, girih_wide b, girih_wide c, girih_wide d) {
  girih_wide lo = a < b ? a : b, hi = a < b ? b : a, lo2 = c < d ? c : d, hi2 = c < d ? d : c;
  return girih_between(lo < lo2 ? lo : lo2, hi > hi2 ? hi : hi2);
}
GIRIH_HELPER girih_range girih_range_add(girih_range a, girih_range b) {
  return girih_between(girih_sat_add(a.lo, b.lo), girih_sat_add(a.hi, b.hi));
}
GIRIH_HELPER girih_range girih_range_sub(girih_range a, girih_range b) {
  return girih_between(girih_sat_add(a.lo, girih_negated(b.hi)), girih_sat_add(a.hi, girih_negated(b.lo)));
}
GIRIH_HELPER girih_range girih_range_mul(girih_range a, girih_range b) {
  return girih_corners(girih_sat_mul(a.lo, b.lo), girih_sat_mul(a.lo, b.hi), girih_sat_mul(a.hi, b.lo),
                       girih_sat_mul(a.hi, b.hi));
}
GIRIH_HELPER girih_range girih_range_div(girih_range a, girih_range b) {
  if (b.lo > 0)
    return girih_corners(girih_floor(a.lo, b.lo), girih_floor(a.lo, b.hi), girih_floor(a.hi, b.lo),
                         girih_floor(a.hi, b.hi));
  girih_wide lo = girih_negated(a.hi), hi = girih_negated(a.lo);
  lo = lo < a.lo ? lo : a.lo, hi = hi > a.hi ? hi : a.hi;
  return girih_between(lo < 0 ? lo : 0, hi > 0 ? hi : 0);
}
GIRIH_HELPER girih_range girih_range_mod(girih_range a, girih_range b) {
  girih_wide most = b.hi > 1 ? b.hi - 1 : 0;
  return girih_between(0, a.lo >= 0 && a.hi < most ? a.hi : most);
}
GIRIH_HELPER girih_range girih_range_min(girih_range a, girih_range b) {
  return girih_between(a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi);
}
GIRIH_HELPER girih_range girih_range_max(girih_range a, girih_range b) {
  return girih_between(a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi);
}
