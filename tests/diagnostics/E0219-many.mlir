// girih compile --ir c
// exit 1, at 90:5
cuda_tile.module @m {
  entry @k() {
    experimental$call @f0() : () -> ()
    return
  }
  experimental$func @f0() {
    experimental$call @f1() : () -> ()
    experimental$call @f1() : () -> ()
    return
  }
  experimental$func @f1() {
    experimental$call @f2() : () -> ()
    experimental$call @f2() : () -> ()
    return
  }
  experimental$func @f2() {
    experimental$call @f3() : () -> ()
    experimental$call @f3() : () -> ()
    return
  }
  experimental$func @f3() {
    experimental$call @f4() : () -> ()
    experimental$call @f4() : () -> ()
    return
  }
  experimental$func @f4() {
    experimental$call @f5() : () -> ()
    experimental$call @f5() : () -> ()
    return
  }
  experimental$func @f5() {
    experimental$call @f6() : () -> ()
    experimental$call @f6() : () -> ()
    return
  }
  experimental$func @f6() {
    experimental$call @f7() : () -> ()
    experimental$call @f7() : () -> ()
    return
  }
  experimental$func @f7() {
    experimental$call @f8() : () -> ()
    experimental$call @f8() : () -> ()
    return
  }
  experimental$func @f8() {
    experimental$call @f9() : () -> ()
    experimental$call @f9() : () -> ()
    return
  }
  experimental$func @f9() {
    experimental$call @f10() : () -> ()
    experimental$call @f10() : () -> ()
    return
  }
  experimental$func @f10() {
    experimental$call @f11() : () -> ()
    experimental$call @f11() : () -> ()
    return
  }
  experimental$func @f11() {
    experimental$call @f12() : () -> ()
    experimental$call @f12() : () -> ()
    return
  }
  experimental$func @f12() {
    experimental$call @f13() : () -> ()
    experimental$call @f13() : () -> ()
    return
  }
  experimental$func @f13() {
    experimental$call @f14() : () -> ()
    experimental$call @f14() : () -> ()
    return
  }
  experimental$func @f14() {
    experimental$call @f15() : () -> ()
    experimental$call @f15() : () -> ()
    return
  }
  experimental$func @f15() {
    experimental$call @f16() : () -> ()
    experimental$call @f16() : () -> ()
    return
  }
  experimental$func @f16() {
    experimental$call @f17() : () -> ()
    experimental$call @f17() : () -> ()
    return
  }
  experimental$func @f17() {
    experimental$call @f18() : () -> ()
    experimental$call @f18() : () -> ()
    return
  }
  experimental$func @f18() {
    experimental$call @f19() : () -> ()
    experimental$call @f19() : () -> ()
    return
  }
  experimental$func @f19() {
    return
  }
}
