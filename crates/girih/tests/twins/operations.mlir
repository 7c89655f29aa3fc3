cuda_tile.module @operations {
  entry @operations(%x: tile<ptr<f32>>, %y: tile<ptr<f32>>, %k: tile<ptr<i32>>, %floats: tile<ptr<f32>>,
      %ints: tile<ptr<i32>>) {
    %c_2_5 = constant <f32: 2.5> : tile<f32>
    %c_3_0 = constant <f32: 3.0> : tile<f32>
    %c_7_853860734030604eminus_05 = constant <f32: 7.853861e-5> : tile<64xf32>
    %c_minus_0_0008010193705558777 = constant <f32: -0.00080101937> : tile<f32>
    %c_0_005188327748328447 = constant <f32: 0.0051883277> : tile<f32>
    %c_minus_0_026853810995817184 = constant <f32: -0.026853811> : tile<f32>
    %c_0_1128358542919159 = constant <f32: 0.112835854> : tile<f32>
    %c_minus_0_3761262595653534 = constant <f32: -0.37612626> : tile<f32>
    %c_0_12837916612625122 = constant <f32: 0.12837917> : tile<f32>
    %c_4_0 = constant <f32: 4.0> : tile<f32>
    %c_0_00018637914035934955 = constant <f32: 0.00018637914> : tile<64xf32>
    %c_minus_0_002947657834738493 = constant <f32: -0.0029476578> : tile<f32>
    %c_0_02183806151151657 = constant <f32: 0.021838062> : tile<f32>
    %c_minus_0_10310675203800201 = constant <f32: -0.10310675> : tile<f32>
    %c_minus_0_638144850730896 = constant <f32: -0.63814485> : tile<f32>
    %c_minus_1_1270891427993774 = constant <f32: -1.1270891> : tile<f32>
    %c_minus_0_00034152361331507564 = constant <f32: -0.0003415236> : tile<f32>
    %c_1_0 = constant <f32: 1.0> : tile<f32>
    %c_0_0 = constant <f32: 0.0> : tile<f32>
    %c_1_5 = constant <f32: 1.5> : tile<f32>
    %c_0_5 = constant <f32: 0.5> : tile<f32>
    %c_minus_0_5 = constant <f32: -0.5> : tile<f32>
    %c_3 = constant <i32: 3> : tile<i32>
    %c_2 = constant <i32: 2> : tile<i32>
    %c_1 = constant <i32: 1> : tile<i32>
    %c_0 = constant <i32: 0> : tile<i32>
    %c_4 = constant <i32: 4> : tile<i32>
    %c_8 = constant <i32: 8> : tile<i32>
    %c_16 = constant <i32: 16> : tile<i32>
    %c_32 = constant <i32: 32> : tile<i32>
    %c_63 = constant <i32: 63> : tile<i32>
    %c_64 = constant <i32: 64> : tile<i32>
    %c_0_1 = constant <f32: 0.0> : tile<64xf32>
    %c_0_2 = constant <f32: 0.0> : tile<8x8xf32>
    %c_0_3 = constant <i32: 0> : tile<i32>
    %c_7 = constant <i32: 7> : tile<i32>
    %c_3449720151 = constant <i32: -845247145> : tile<i32>
    %c_3528531795 = constant <i32: -766435501> : tile<i32>
    %c_2654435769 = constant <i32: -1640531527> : tile<i32>
    %c_3144134277 = constant <i32: -1150833019> : tile<i32>
    %c_4_6566127342eminus_10 = constant <f32: 4.6566126e-10> : tile<f32>
    %c_1eminus_07 = constant <f32: 1.0e-7> : tile<f32>
    %c_minus_2_0 = constant <f32: -2.0> : tile<f32>
    %c_6_283185307179586 = constant <f32: 6.2831855> : tile<f32>
    %c_7_1 = constant <i32: 7> : tile<i32>
    %c_15 = constant <i32: 15> : tile<i32>
    %c_31 = constant <i32: 31> : tile<i32>
    %c_128 = constant <i32: 128> : tile<i32>
    %c_192 = constant <i32: 192> : tile<i32>
    %c_256 = constant <i32: 256> : tile<i32>
    %c_320 = constant <i32: 320> : tile<i32>
    %c_384 = constant <i32: 384> : tile<i32>
    %c_448 = constant <i32: 448> : tile<i32>
    %c_512 = constant <i32: 512> : tile<i32>
    %c_576 = constant <i32: 576> : tile<i32>
    %c_640 = constant <i32: 640> : tile<i32>
    %c_704 = constant <i32: 704> : tile<i32>
    %c_768 = constant <i32: 768> : tile<i32>
    %c_832 = constant <i32: 832> : tile<i32>
    %c_896 = constant <i32: 896> : tile<i32>
    %c_960 = constant <i32: 960> : tile<i32>
    %c_1024 = constant <i32: 1024> : tile<i32>
    %c_1088 = constant <i32: 1088> : tile<i32>
    %c_1152 = constant <i32: 1152> : tile<i32>
    %c_1216 = constant <i32: 1216> : tile<i32>
    %c_1280 = constant <i32: 1280> : tile<i32>
    %c_1344 = constant <i32: 1344> : tile<i32>
    %c_1408 = constant <i32: 1408> : tile<i32>
    %c_1472 = constant <i32: 1472> : tile<i32>
    %c_1536 = constant <i32: 1536> : tile<i32>
    %c_1600 = constant <i32: 1600> : tile<i32>
    %c_1664 = constant <i32: 1664> : tile<i32>
    %c_1728 = constant <i32: 1728> : tile<i32>
    %c_1792 = constant <i32: 1792> : tile<i32>
    %c_1856 = constant <i32: 1856> : tile<i32>
    %c_1920 = constant <i32: 1920> : tile<i32>
    %c_1984 = constant <i32: 1984> : tile<i32>
    %c_2048 = constant <i32: 2048> : tile<i32>
    %c_2112 = constant <i32: 2112> : tile<i32>
    %c_2176 = constant <i32: 2176> : tile<i32>
    %c_2240 = constant <i32: 2240> : tile<i32>
    %c_2304 = constant <i32: 2304> : tile<i32>
    %c_2368 = constant <i32: 2368> : tile<i32>
    %c_2432 = constant <i32: 2432> : tile<i32>
    %c_2496 = constant <i32: 2496> : tile<i32>
    %c_2560 = constant <i32: 2560> : tile<i32>
    %c_2624 = constant <i32: 2624> : tile<i32>
    %c_2688 = constant <i32: 2688> : tile<i32>
    %c_2752 = constant <i32: 2752> : tile<i32>
    %c_2816 = constant <i32: 2816> : tile<i32>
    %c_2880 = constant <i32: 2880> : tile<i32>
    %c_2944 = constant <i32: 2944> : tile<i32>
    %c_5 = constant <i32: 5> : tile<i32>
    %c_minus_1 = constant <i32: -1> : tile<64xi32>
    %c_minus_inf = constant <f32: 0xFF800000> : tile<f32>
    %c_2147483647 = constant <i32: 2147483647> : tile<i32>
    %c_inf = constant <f32: 0x7F800000> : tile<f32>
    %scratch = alloca num_elem = 64, alignment = 64 : tile<ptr<f32>>
    %scratch_1 = alloca num_elem = 64, alignment = 64 : tile<ptr<f32>>
    %i = iota : tile<64xi32>
    %0 = reshape %x : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1 = broadcast %0 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %2 = offset %1, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %a, %read = load_ptr_tko weak %2 : tile<64xptr<f32>> -> tile<64xf32>, token
    %3 = reshape %y : tile<ptr<f32>> -> tile<1xptr<f32>>
    %4 = broadcast %3 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %5 = offset %4, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %b, %read_1 = load_ptr_tko weak %5 : tile<64xptr<f32>> -> tile<64xf32>, token
    %6 = reshape %k : tile<ptr<i32>> -> tile<1xptr<i32>>
    %7 = broadcast %6 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %8 = offset %7, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %n, %read_2 = load_ptr_tko weak %8 : tile<64xptr<i32>> -> tile<64xi32>, token
    %square = reshape %a : tile<64xf32> -> tile<8x8xf32>
    %result = addf %a, %b : tile<64xf32>
    %9 = reshape %c_2_5 : tile<f32> -> tile<1xf32>
    %10 = broadcast %9 : tile<1xf32> -> tile<64xf32>
    %result_1 = subf %a, %10 : tile<64xf32>
    %11 = reshape %c_3_0 : tile<f32> -> tile<1xf32>
    %12 = broadcast %11 : tile<1xf32> -> tile<64xf32>
    %result_2 = mulf %12, %a : tile<64xf32>
    %result_3 = divf %a, %b : tile<64xf32>
    %result_4 = remf %a, %b : tile<64xf32>
    %result_5 = negf %a : tile<64xf32>
    %result_6 = exp %a : tile<64xf32>
    %result_7 = exp2 %a : tile<64xf32>
    %13 = absf %a : tile<64xf32>
    %result_8 = log %13 : tile<64xf32>
    %14 = absf %a : tile<64xf32>
    %result_9 = log2 %14 : tile<64xf32>
    %15 = absf %a : tile<64xf32>
    %result_10 = sqrt %15 : tile<64xf32>
    %16 = absf %a : tile<64xf32>
    %result_11 = rsqrt %16 : tile<64xf32>
    %result_12 = sin %a : tile<64xf32>
    %result_13 = cos %a : tile<64xf32>
    %result_14 = tan %a : tile<64xf32>
    %result_15 = sinh %a : tile<64xf32>
    %result_16 = cosh %a : tile<64xf32>
    %result_17 = tanh %a : tile<64xf32>
    %result_18 = floor %a : tile<64xf32>
    %result_19 = ceil %a : tile<64xf32>
    %17 = absf %a : tile<64xf32>
    %18 = mulf %a, %a : tile<64xf32>
    %19 = reshape %c_minus_0_0008010193705558777 : tile<f32> -> tile<1xf32>
    %20 = broadcast %19 : tile<1xf32> -> tile<64xf32>
    %21 = fma %c_7_853860734030604eminus_05, %18, %20 : tile<64xf32>
    %22 = reshape %c_0_005188327748328447 : tile<f32> -> tile<1xf32>
    %23 = broadcast %22 : tile<1xf32> -> tile<64xf32>
    %24 = fma %21, %18, %23 : tile<64xf32>
    %25 = reshape %c_minus_0_026853810995817184 : tile<f32> -> tile<1xf32>
    %26 = broadcast %25 : tile<1xf32> -> tile<64xf32>
    %27 = fma %24, %18, %26 : tile<64xf32>
    %28 = reshape %c_0_1128358542919159 : tile<f32> -> tile<1xf32>
    %29 = broadcast %28 : tile<1xf32> -> tile<64xf32>
    %30 = fma %27, %18, %29 : tile<64xf32>
    %31 = reshape %c_minus_0_3761262595653534 : tile<f32> -> tile<1xf32>
    %32 = broadcast %31 : tile<1xf32> -> tile<64xf32>
    %33 = fma %30, %18, %32 : tile<64xf32>
    %34 = reshape %c_0_12837916612625122 : tile<f32> -> tile<1xf32>
    %35 = broadcast %34 : tile<1xf32> -> tile<64xf32>
    %36 = fma %33, %18, %35 : tile<64xf32>
    %37 = fma %a, %36, %a : tile<64xf32>
    %38 = reshape %c_4_0 : tile<f32> -> tile<1xf32>
    %39 = broadcast %38 : tile<1xf32> -> tile<64xf32>
    %40 = minf %17, %39 : tile<64xf32>
    %41 = reshape %c_minus_0_002947657834738493 : tile<f32> -> tile<1xf32>
    %42 = broadcast %41 : tile<1xf32> -> tile<64xf32>
    %43 = fma %c_0_00018637914035934955, %40, %42 : tile<64xf32>
    %44 = reshape %c_0_02183806151151657 : tile<f32> -> tile<1xf32>
    %45 = broadcast %44 : tile<1xf32> -> tile<64xf32>
    %46 = fma %43, %40, %45 : tile<64xf32>
    %47 = reshape %c_minus_0_10310675203800201 : tile<f32> -> tile<1xf32>
    %48 = broadcast %47 : tile<1xf32> -> tile<64xf32>
    %49 = fma %46, %40, %48 : tile<64xf32>
    %50 = reshape %c_minus_0_638144850730896 : tile<f32> -> tile<1xf32>
    %51 = broadcast %50 : tile<1xf32> -> tile<64xf32>
    %52 = fma %49, %40, %51 : tile<64xf32>
    %53 = reshape %c_minus_1_1270891427993774 : tile<f32> -> tile<1xf32>
    %54 = broadcast %53 : tile<1xf32> -> tile<64xf32>
    %55 = fma %52, %40, %54 : tile<64xf32>
    %56 = reshape %c_minus_0_00034152361331507564 : tile<f32> -> tile<1xf32>
    %57 = broadcast %56 : tile<1xf32> -> tile<64xf32>
    %58 = fma %55, %40, %57 : tile<64xf32>
    %59 = exp %58 : tile<64xf32>
    %60 = reshape %c_1_0 : tile<f32> -> tile<1xf32>
    %61 = broadcast %60 : tile<1xf32> -> tile<64xf32>
    %62 = subf %61, %59 : tile<64xf32>
    %63 = reshape %c_1_0 : tile<f32> -> tile<1xf32>
    %64 = broadcast %63 : tile<1xf32> -> tile<64xf32>
    %65 = cmpf greater_than ordered %17, %64 : tile<64xf32> -> tile<64xi1>
    %66 = reshape %c_0_0 : tile<f32> -> tile<1xf32>
    %67 = broadcast %66 : tile<1xf32> -> tile<64xf32>
    %68 = cmpf less_than ordered %a, %67 : tile<64xf32> -> tile<64xi1>
    %69 = negf %62 : tile<64xf32>
    %70 = select %68, %69, %62 : tile<64xi1>, tile<64xf32>
    %result_20 = select %65, %70, %37 : tile<64xi1>, tile<64xf32>
    %71 = negf %a : tile<64xf32>
    %72 = exp %71 : tile<64xf32>
    %73 = reshape %c_1_0 : tile<f32> -> tile<1xf32>
    %74 = broadcast %73 : tile<1xf32> -> tile<64xf32>
    %75 = addf %74, %72 : tile<64xf32>
    %76 = reshape %c_1_0 : tile<f32> -> tile<1xf32>
    %77 = broadcast %76 : tile<1xf32> -> tile<64xf32>
    %result_21 = divf %77, %75 : tile<64xf32>
    %78 = reshape %c_1_5 : tile<f32> -> tile<1xf32>
    %79 = broadcast %78 : tile<1xf32> -> tile<64xf32>
    %result_22 = fma %a, %b, %79 : tile<64xf32>
    %result_23 = atan2 %a, %b : tile<64xf32>
    %result_24 = maxf %a, %b : tile<64xf32>
    %80 = reshape %c_0_5 : tile<f32> -> tile<1xf32>
    %81 = broadcast %80 : tile<1xf32> -> tile<64xf32>
    %result_25 = minf %a, %81 : tile<64xf32>
    %82 = reshape %c_minus_0_5 : tile<f32> -> tile<1xf32>
    %83 = broadcast %82 : tile<1xf32> -> tile<64xf32>
    %84 = maxf %a, %83 : tile<64xf32>
    %85 = reshape %c_0_5 : tile<f32> -> tile<1xf32>
    %86 = broadcast %85 : tile<1xf32> -> tile<64xf32>
    %result_26 = minf %84, %86 : tile<64xf32>
    %87 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %88 = broadcast %87 : tile<1xi32> -> tile<64xi32>
    %89 = cmpi greater_than %n, %88, signed : tile<64xi32> -> tile<64xi1>
    %result_27 = select %89, %a, %b : tile<64xi1>, tile<64xf32>
    %90 = reduce %a dim=0 identities=[0xFF800000 : f32] : tile<64xf32> -> tile<f32>
        (%x_1: tile<f32>, %acc: tile<f32>) {
      %91 = maxf %x_1, %acc : tile<f32>
      yield %91 : tile<f32>
    }
    %92 = reshape %90 : tile<f32> -> tile<1xf32>
    %93 = broadcast %92 : tile<1xf32> -> tile<64xf32>
    %94 = subf %a, %93 : tile<64xf32>
    %95 = exp %94 : tile<64xf32>
    %96 = reduce %95 dim=0 identities=[0.0 : f32] : tile<64xf32> -> tile<f32>
        (%x_2: tile<f32>, %acc_1: tile<f32>) {
      %97 = addf %x_2, %acc_1 : tile<f32>
      yield %97 : tile<f32>
    }
    %98 = reshape %96 : tile<f32> -> tile<1xf32>
    %99 = broadcast %98 : tile<1xf32> -> tile<64xf32>
    %result_28 = divf %95, %99 : tile<64xf32>
    %100 = iota : tile<32xi32>
    %101 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %102 = broadcast %101 : tile<1xi32> -> tile<32xi32>
    %103 = muli %100, %102 : tile<32xi32>
    %104 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %105 = broadcast %104 : tile<1xi32> -> tile<32xi32>
    %106 = divi %103, %105 signed : tile<32xi32>
    %107 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %108 = broadcast %107 : tile<1xi32> -> tile<32xi32>
    %109 = remi %106, %108 signed : tile<32xi32>
    %110 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %111 = broadcast %110 : tile<1xi32> -> tile<32xi32>
    %112 = cmpi equal %109, %111, signed : tile<32xi32> -> tile<32xi1>
    %113 = reshape %112 : tile<32xi1> -> tile<32x1x1xi1>
    %114 = reshape %a : tile<64xf32> -> tile<32x2x1xf32>
    %115 = extract %114[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %116 = extract %114[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %117 = cmpf greater_than ordered %115, %116 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %118 = xori %117, %113 : tile<32x1x1xi1>
    %119 = select %118, %116, %115 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %120 = select %118, %115, %116 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %121 = cat %119, %120 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %122 = reshape %121 : tile<32x2x1xf32> -> tile<64xf32>
    %123 = iota : tile<16xi32>
    %124 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %125 = broadcast %124 : tile<1xi32> -> tile<16xi32>
    %126 = muli %123, %125 : tile<16xi32>
    %127 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %128 = broadcast %127 : tile<1xi32> -> tile<16xi32>
    %129 = divi %126, %128 signed : tile<16xi32>
    %130 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %131 = broadcast %130 : tile<1xi32> -> tile<16xi32>
    %132 = remi %129, %131 signed : tile<16xi32>
    %133 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %134 = broadcast %133 : tile<1xi32> -> tile<16xi32>
    %135 = cmpi equal %132, %134, signed : tile<16xi32> -> tile<16xi1>
    %136 = reshape %135 : tile<16xi1> -> tile<16x1x1xi1>
    %137 = reshape %122 : tile<64xf32> -> tile<16x2x2xf32>
    %138 = extract %137[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %139 = extract %137[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %140 = cmpf greater_than ordered %138, %139 : tile<16x1x2xf32> -> tile<16x1x2xi1>
    %141 = broadcast %136 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %142 = xori %140, %141 : tile<16x1x2xi1>
    %143 = select %142, %139, %138 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %144 = select %142, %138, %139 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %145 = cat %143, %144 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %146 = reshape %145 : tile<16x2x2xf32> -> tile<64xf32>
    %147 = iota : tile<32xi32>
    %148 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %149 = broadcast %148 : tile<1xi32> -> tile<32xi32>
    %150 = muli %147, %149 : tile<32xi32>
    %151 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %152 = broadcast %151 : tile<1xi32> -> tile<32xi32>
    %153 = divi %150, %152 signed : tile<32xi32>
    %154 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %155 = broadcast %154 : tile<1xi32> -> tile<32xi32>
    %156 = remi %153, %155 signed : tile<32xi32>
    %157 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %158 = broadcast %157 : tile<1xi32> -> tile<32xi32>
    %159 = cmpi equal %156, %158, signed : tile<32xi32> -> tile<32xi1>
    %160 = reshape %159 : tile<32xi1> -> tile<32x1x1xi1>
    %161 = reshape %146 : tile<64xf32> -> tile<32x2x1xf32>
    %162 = extract %161[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %163 = extract %161[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %164 = cmpf greater_than ordered %162, %163 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %165 = xori %164, %160 : tile<32x1x1xi1>
    %166 = select %165, %163, %162 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %167 = select %165, %162, %163 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %168 = cat %166, %167 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %169 = reshape %168 : tile<32x2x1xf32> -> tile<64xf32>
    %170 = iota : tile<8xi32>
    %171 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %172 = broadcast %171 : tile<1xi32> -> tile<8xi32>
    %173 = muli %170, %172 : tile<8xi32>
    %174 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %175 = broadcast %174 : tile<1xi32> -> tile<8xi32>
    %176 = divi %173, %175 signed : tile<8xi32>
    %177 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %178 = broadcast %177 : tile<1xi32> -> tile<8xi32>
    %179 = remi %176, %178 signed : tile<8xi32>
    %180 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %181 = broadcast %180 : tile<1xi32> -> tile<8xi32>
    %182 = cmpi equal %179, %181, signed : tile<8xi32> -> tile<8xi1>
    %183 = reshape %182 : tile<8xi1> -> tile<8x1x1xi1>
    %184 = reshape %169 : tile<64xf32> -> tile<8x2x4xf32>
    %185 = extract %184[%c_0, %c_0, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %186 = extract %184[%c_0, %c_1, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %187 = cmpf greater_than ordered %185, %186 : tile<8x1x4xf32> -> tile<8x1x4xi1>
    %188 = broadcast %183 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %189 = xori %187, %188 : tile<8x1x4xi1>
    %190 = select %189, %186, %185 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %191 = select %189, %185, %186 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %192 = cat %190, %191 dim = 1 : tile<8x1x4xf32>, tile<8x1x4xf32> -> tile<8x2x4xf32>
    %193 = reshape %192 : tile<8x2x4xf32> -> tile<64xf32>
    %194 = iota : tile<16xi32>
    %195 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %196 = broadcast %195 : tile<1xi32> -> tile<16xi32>
    %197 = muli %194, %196 : tile<16xi32>
    %198 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %199 = broadcast %198 : tile<1xi32> -> tile<16xi32>
    %200 = divi %197, %199 signed : tile<16xi32>
    %201 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %202 = broadcast %201 : tile<1xi32> -> tile<16xi32>
    %203 = remi %200, %202 signed : tile<16xi32>
    %204 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %205 = broadcast %204 : tile<1xi32> -> tile<16xi32>
    %206 = cmpi equal %203, %205, signed : tile<16xi32> -> tile<16xi1>
    %207 = reshape %206 : tile<16xi1> -> tile<16x1x1xi1>
    %208 = reshape %193 : tile<64xf32> -> tile<16x2x2xf32>
    %209 = extract %208[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %210 = extract %208[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %211 = cmpf greater_than ordered %209, %210 : tile<16x1x2xf32> -> tile<16x1x2xi1>
    %212 = broadcast %207 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %213 = xori %211, %212 : tile<16x1x2xi1>
    %214 = select %213, %210, %209 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %215 = select %213, %209, %210 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %216 = cat %214, %215 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %217 = reshape %216 : tile<16x2x2xf32> -> tile<64xf32>
    %218 = iota : tile<32xi32>
    %219 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %220 = broadcast %219 : tile<1xi32> -> tile<32xi32>
    %221 = muli %218, %220 : tile<32xi32>
    %222 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %223 = broadcast %222 : tile<1xi32> -> tile<32xi32>
    %224 = divi %221, %223 signed : tile<32xi32>
    %225 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %226 = broadcast %225 : tile<1xi32> -> tile<32xi32>
    %227 = remi %224, %226 signed : tile<32xi32>
    %228 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %229 = broadcast %228 : tile<1xi32> -> tile<32xi32>
    %230 = cmpi equal %227, %229, signed : tile<32xi32> -> tile<32xi1>
    %231 = reshape %230 : tile<32xi1> -> tile<32x1x1xi1>
    %232 = reshape %217 : tile<64xf32> -> tile<32x2x1xf32>
    %233 = extract %232[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %234 = extract %232[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %235 = cmpf greater_than ordered %233, %234 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %236 = xori %235, %231 : tile<32x1x1xi1>
    %237 = select %236, %234, %233 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %238 = select %236, %233, %234 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %239 = cat %237, %238 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %240 = reshape %239 : tile<32x2x1xf32> -> tile<64xf32>
    %241 = iota : tile<4xi32>
    %242 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %243 = broadcast %242 : tile<1xi32> -> tile<4xi32>
    %244 = muli %241, %243 : tile<4xi32>
    %245 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %246 = broadcast %245 : tile<1xi32> -> tile<4xi32>
    %247 = divi %244, %246 signed : tile<4xi32>
    %248 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %249 = broadcast %248 : tile<1xi32> -> tile<4xi32>
    %250 = remi %247, %249 signed : tile<4xi32>
    %251 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %252 = broadcast %251 : tile<1xi32> -> tile<4xi32>
    %253 = cmpi equal %250, %252, signed : tile<4xi32> -> tile<4xi1>
    %254 = reshape %253 : tile<4xi1> -> tile<4x1x1xi1>
    %255 = reshape %240 : tile<64xf32> -> tile<4x2x8xf32>
    %256 = extract %255[%c_0, %c_0, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %257 = extract %255[%c_0, %c_1, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %258 = cmpf greater_than ordered %256, %257 : tile<4x1x8xf32> -> tile<4x1x8xi1>
    %259 = broadcast %254 : tile<4x1x1xi1> -> tile<4x1x8xi1>
    %260 = xori %258, %259 : tile<4x1x8xi1>
    %261 = select %260, %257, %256 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %262 = select %260, %256, %257 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %263 = cat %261, %262 dim = 1 : tile<4x1x8xf32>, tile<4x1x8xf32> -> tile<4x2x8xf32>
    %264 = reshape %263 : tile<4x2x8xf32> -> tile<64xf32>
    %265 = iota : tile<8xi32>
    %266 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %267 = broadcast %266 : tile<1xi32> -> tile<8xi32>
    %268 = muli %265, %267 : tile<8xi32>
    %269 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %270 = broadcast %269 : tile<1xi32> -> tile<8xi32>
    %271 = divi %268, %270 signed : tile<8xi32>
    %272 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %273 = broadcast %272 : tile<1xi32> -> tile<8xi32>
    %274 = remi %271, %273 signed : tile<8xi32>
    %275 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %276 = broadcast %275 : tile<1xi32> -> tile<8xi32>
    %277 = cmpi equal %274, %276, signed : tile<8xi32> -> tile<8xi1>
    %278 = reshape %277 : tile<8xi1> -> tile<8x1x1xi1>
    %279 = reshape %264 : tile<64xf32> -> tile<8x2x4xf32>
    %280 = extract %279[%c_0, %c_0, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %281 = extract %279[%c_0, %c_1, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %282 = cmpf greater_than ordered %280, %281 : tile<8x1x4xf32> -> tile<8x1x4xi1>
    %283 = broadcast %278 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %284 = xori %282, %283 : tile<8x1x4xi1>
    %285 = select %284, %281, %280 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %286 = select %284, %280, %281 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %287 = cat %285, %286 dim = 1 : tile<8x1x4xf32>, tile<8x1x4xf32> -> tile<8x2x4xf32>
    %288 = reshape %287 : tile<8x2x4xf32> -> tile<64xf32>
    %289 = iota : tile<16xi32>
    %290 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %291 = broadcast %290 : tile<1xi32> -> tile<16xi32>
    %292 = muli %289, %291 : tile<16xi32>
    %293 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %294 = broadcast %293 : tile<1xi32> -> tile<16xi32>
    %295 = divi %292, %294 signed : tile<16xi32>
    %296 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %297 = broadcast %296 : tile<1xi32> -> tile<16xi32>
    %298 = remi %295, %297 signed : tile<16xi32>
    %299 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %300 = broadcast %299 : tile<1xi32> -> tile<16xi32>
    %301 = cmpi equal %298, %300, signed : tile<16xi32> -> tile<16xi1>
    %302 = reshape %301 : tile<16xi1> -> tile<16x1x1xi1>
    %303 = reshape %288 : tile<64xf32> -> tile<16x2x2xf32>
    %304 = extract %303[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %305 = extract %303[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %306 = cmpf greater_than ordered %304, %305 : tile<16x1x2xf32> -> tile<16x1x2xi1>
    %307 = broadcast %302 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %308 = xori %306, %307 : tile<16x1x2xi1>
    %309 = select %308, %305, %304 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %310 = select %308, %304, %305 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %311 = cat %309, %310 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %312 = reshape %311 : tile<16x2x2xf32> -> tile<64xf32>
    %313 = iota : tile<32xi32>
    %314 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %315 = broadcast %314 : tile<1xi32> -> tile<32xi32>
    %316 = muli %313, %315 : tile<32xi32>
    %317 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %318 = broadcast %317 : tile<1xi32> -> tile<32xi32>
    %319 = divi %316, %318 signed : tile<32xi32>
    %320 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %321 = broadcast %320 : tile<1xi32> -> tile<32xi32>
    %322 = remi %319, %321 signed : tile<32xi32>
    %323 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %324 = broadcast %323 : tile<1xi32> -> tile<32xi32>
    %325 = cmpi equal %322, %324, signed : tile<32xi32> -> tile<32xi1>
    %326 = reshape %325 : tile<32xi1> -> tile<32x1x1xi1>
    %327 = reshape %312 : tile<64xf32> -> tile<32x2x1xf32>
    %328 = extract %327[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %329 = extract %327[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %330 = cmpf greater_than ordered %328, %329 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %331 = xori %330, %326 : tile<32x1x1xi1>
    %332 = select %331, %329, %328 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %333 = select %331, %328, %329 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %334 = cat %332, %333 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %335 = reshape %334 : tile<32x2x1xf32> -> tile<64xf32>
    %336 = iota : tile<2xi32>
    %337 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %338 = broadcast %337 : tile<1xi32> -> tile<2xi32>
    %339 = muli %336, %338 : tile<2xi32>
    %340 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %341 = broadcast %340 : tile<1xi32> -> tile<2xi32>
    %342 = divi %339, %341 signed : tile<2xi32>
    %343 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %344 = broadcast %343 : tile<1xi32> -> tile<2xi32>
    %345 = remi %342, %344 signed : tile<2xi32>
    %346 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %347 = broadcast %346 : tile<1xi32> -> tile<2xi32>
    %348 = cmpi equal %345, %347, signed : tile<2xi32> -> tile<2xi1>
    %349 = reshape %348 : tile<2xi1> -> tile<2x1x1xi1>
    %350 = reshape %335 : tile<64xf32> -> tile<2x2x16xf32>
    %351 = extract %350[%c_0, %c_0, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %352 = extract %350[%c_0, %c_1, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %353 = cmpf greater_than ordered %351, %352 : tile<2x1x16xf32> -> tile<2x1x16xi1>
    %354 = broadcast %349 : tile<2x1x1xi1> -> tile<2x1x16xi1>
    %355 = xori %353, %354 : tile<2x1x16xi1>
    %356 = select %355, %352, %351 : tile<2x1x16xi1>, tile<2x1x16xf32>
    %357 = select %355, %351, %352 : tile<2x1x16xi1>, tile<2x1x16xf32>
    %358 = cat %356, %357 dim = 1 : tile<2x1x16xf32>, tile<2x1x16xf32> -> tile<2x2x16xf32>
    %359 = reshape %358 : tile<2x2x16xf32> -> tile<64xf32>
    %360 = iota : tile<4xi32>
    %361 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %362 = broadcast %361 : tile<1xi32> -> tile<4xi32>
    %363 = muli %360, %362 : tile<4xi32>
    %364 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %365 = broadcast %364 : tile<1xi32> -> tile<4xi32>
    %366 = divi %363, %365 signed : tile<4xi32>
    %367 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %368 = broadcast %367 : tile<1xi32> -> tile<4xi32>
    %369 = remi %366, %368 signed : tile<4xi32>
    %370 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %371 = broadcast %370 : tile<1xi32> -> tile<4xi32>
    %372 = cmpi equal %369, %371, signed : tile<4xi32> -> tile<4xi1>
    %373 = reshape %372 : tile<4xi1> -> tile<4x1x1xi1>
    %374 = reshape %359 : tile<64xf32> -> tile<4x2x8xf32>
    %375 = extract %374[%c_0, %c_0, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %376 = extract %374[%c_0, %c_1, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %377 = cmpf greater_than ordered %375, %376 : tile<4x1x8xf32> -> tile<4x1x8xi1>
    %378 = broadcast %373 : tile<4x1x1xi1> -> tile<4x1x8xi1>
    %379 = xori %377, %378 : tile<4x1x8xi1>
    %380 = select %379, %376, %375 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %381 = select %379, %375, %376 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %382 = cat %380, %381 dim = 1 : tile<4x1x8xf32>, tile<4x1x8xf32> -> tile<4x2x8xf32>
    %383 = reshape %382 : tile<4x2x8xf32> -> tile<64xf32>
    %384 = iota : tile<8xi32>
    %385 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %386 = broadcast %385 : tile<1xi32> -> tile<8xi32>
    %387 = muli %384, %386 : tile<8xi32>
    %388 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %389 = broadcast %388 : tile<1xi32> -> tile<8xi32>
    %390 = divi %387, %389 signed : tile<8xi32>
    %391 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %392 = broadcast %391 : tile<1xi32> -> tile<8xi32>
    %393 = remi %390, %392 signed : tile<8xi32>
    %394 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %395 = broadcast %394 : tile<1xi32> -> tile<8xi32>
    %396 = cmpi equal %393, %395, signed : tile<8xi32> -> tile<8xi1>
    %397 = reshape %396 : tile<8xi1> -> tile<8x1x1xi1>
    %398 = reshape %383 : tile<64xf32> -> tile<8x2x4xf32>
    %399 = extract %398[%c_0, %c_0, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %400 = extract %398[%c_0, %c_1, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %401 = cmpf greater_than ordered %399, %400 : tile<8x1x4xf32> -> tile<8x1x4xi1>
    %402 = broadcast %397 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %403 = xori %401, %402 : tile<8x1x4xi1>
    %404 = select %403, %400, %399 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %405 = select %403, %399, %400 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %406 = cat %404, %405 dim = 1 : tile<8x1x4xf32>, tile<8x1x4xf32> -> tile<8x2x4xf32>
    %407 = reshape %406 : tile<8x2x4xf32> -> tile<64xf32>
    %408 = iota : tile<16xi32>
    %409 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %410 = broadcast %409 : tile<1xi32> -> tile<16xi32>
    %411 = muli %408, %410 : tile<16xi32>
    %412 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %413 = broadcast %412 : tile<1xi32> -> tile<16xi32>
    %414 = divi %411, %413 signed : tile<16xi32>
    %415 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %416 = broadcast %415 : tile<1xi32> -> tile<16xi32>
    %417 = remi %414, %416 signed : tile<16xi32>
    %418 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %419 = broadcast %418 : tile<1xi32> -> tile<16xi32>
    %420 = cmpi equal %417, %419, signed : tile<16xi32> -> tile<16xi1>
    %421 = reshape %420 : tile<16xi1> -> tile<16x1x1xi1>
    %422 = reshape %407 : tile<64xf32> -> tile<16x2x2xf32>
    %423 = extract %422[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %424 = extract %422[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %425 = cmpf greater_than ordered %423, %424 : tile<16x1x2xf32> -> tile<16x1x2xi1>
    %426 = broadcast %421 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %427 = xori %425, %426 : tile<16x1x2xi1>
    %428 = select %427, %424, %423 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %429 = select %427, %423, %424 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %430 = cat %428, %429 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %431 = reshape %430 : tile<16x2x2xf32> -> tile<64xf32>
    %432 = iota : tile<32xi32>
    %433 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %434 = broadcast %433 : tile<1xi32> -> tile<32xi32>
    %435 = muli %432, %434 : tile<32xi32>
    %436 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %437 = broadcast %436 : tile<1xi32> -> tile<32xi32>
    %438 = divi %435, %437 signed : tile<32xi32>
    %439 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %440 = broadcast %439 : tile<1xi32> -> tile<32xi32>
    %441 = remi %438, %440 signed : tile<32xi32>
    %442 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %443 = broadcast %442 : tile<1xi32> -> tile<32xi32>
    %444 = cmpi equal %441, %443, signed : tile<32xi32> -> tile<32xi1>
    %445 = reshape %444 : tile<32xi1> -> tile<32x1x1xi1>
    %446 = reshape %431 : tile<64xf32> -> tile<32x2x1xf32>
    %447 = extract %446[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %448 = extract %446[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %449 = cmpf greater_than ordered %447, %448 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %450 = xori %449, %445 : tile<32x1x1xi1>
    %451 = select %450, %448, %447 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %452 = select %450, %447, %448 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %453 = cat %451, %452 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %454 = reshape %453 : tile<32x2x1xf32> -> tile<64xf32>
    %455 = reshape %454 : tile<64xf32> -> tile<1x2x32xf32>
    %456 = extract %455[%c_0, %c_0, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %457 = extract %455[%c_0, %c_1, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %458 = cmpf greater_than ordered %456, %457 : tile<1x1x32xf32> -> tile<1x1x32xi1>
    %459 = select %458, %457, %456 : tile<1x1x32xi1>, tile<1x1x32xf32>
    %460 = select %458, %456, %457 : tile<1x1x32xi1>, tile<1x1x32xf32>
    %461 = cat %459, %460 dim = 1 : tile<1x1x32xf32>, tile<1x1x32xf32> -> tile<1x2x32xf32>
    %462 = reshape %461 : tile<1x2x32xf32> -> tile<64xf32>
    %463 = reshape %462 : tile<64xf32> -> tile<2x2x16xf32>
    %464 = extract %463[%c_0, %c_0, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %465 = extract %463[%c_0, %c_1, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %466 = cmpf greater_than ordered %464, %465 : tile<2x1x16xf32> -> tile<2x1x16xi1>
    %467 = select %466, %465, %464 : tile<2x1x16xi1>, tile<2x1x16xf32>
    %468 = select %466, %464, %465 : tile<2x1x16xi1>, tile<2x1x16xf32>
    %469 = cat %467, %468 dim = 1 : tile<2x1x16xf32>, tile<2x1x16xf32> -> tile<2x2x16xf32>
    %470 = reshape %469 : tile<2x2x16xf32> -> tile<64xf32>
    %471 = reshape %470 : tile<64xf32> -> tile<4x2x8xf32>
    %472 = extract %471[%c_0, %c_0, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %473 = extract %471[%c_0, %c_1, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %474 = cmpf greater_than ordered %472, %473 : tile<4x1x8xf32> -> tile<4x1x8xi1>
    %475 = select %474, %473, %472 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %476 = select %474, %472, %473 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %477 = cat %475, %476 dim = 1 : tile<4x1x8xf32>, tile<4x1x8xf32> -> tile<4x2x8xf32>
    %478 = reshape %477 : tile<4x2x8xf32> -> tile<64xf32>
    %479 = reshape %478 : tile<64xf32> -> tile<8x2x4xf32>
    %480 = extract %479[%c_0, %c_0, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %481 = extract %479[%c_0, %c_1, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %482 = cmpf greater_than ordered %480, %481 : tile<8x1x4xf32> -> tile<8x1x4xi1>
    %483 = select %482, %481, %480 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %484 = select %482, %480, %481 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %485 = cat %483, %484 dim = 1 : tile<8x1x4xf32>, tile<8x1x4xf32> -> tile<8x2x4xf32>
    %486 = reshape %485 : tile<8x2x4xf32> -> tile<64xf32>
    %487 = reshape %486 : tile<64xf32> -> tile<16x2x2xf32>
    %488 = extract %487[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %489 = extract %487[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %490 = cmpf greater_than ordered %488, %489 : tile<16x1x2xf32> -> tile<16x1x2xi1>
    %491 = select %490, %489, %488 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %492 = select %490, %488, %489 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %493 = cat %491, %492 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %494 = reshape %493 : tile<16x2x2xf32> -> tile<64xf32>
    %495 = reshape %494 : tile<64xf32> -> tile<32x2x1xf32>
    %496 = extract %495[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %497 = extract %495[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %498 = cmpf greater_than ordered %496, %497 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %499 = select %498, %497, %496 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %500 = select %498, %496, %497 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %501 = cat %499, %500 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %result_29 = reshape %501 : tile<32x2x1xf32> -> tile<64xf32>
    %502 = iota : tile<64xi32>
    %503 = reshape %c_63 : tile<i32> -> tile<1xi32>
    %504 = broadcast %503 : tile<1xi32> -> tile<64xi32>
    %505 = subi %504, %502 : tile<64xi32>
    %506 = iota : tile<64xi32>
    %507 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %508 = broadcast %507 : tile<1xi32> -> tile<64xi32>
    %509 = muli %506, %508 : tile<64xi32>
    %510 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %511 = broadcast %510 : tile<1xi32> -> tile<64xi32>
    %512 = addi %511, %509 : tile<64xi32>
    %513 = reshape %scratch : tile<ptr<f32>> -> tile<1xptr<f32>>
    %514 = broadcast %513 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %515 = offset %514, %512 : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %joined = join_tokens %read, %read_1, %read_2 : token
    %wrote = store_ptr_tko weak %515, %a token = %joined
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %516 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %517 = broadcast %516 : tile<1xi32> -> tile<64xi32>
    %518 = cmpi greater_than_or_equal %505, %517, signed : tile<64xi32> -> tile<64xi1>
    %519 = reshape %c_64 : tile<i32> -> tile<1xi32>
    %520 = broadcast %519 : tile<1xi32> -> tile<64xi32>
    %521 = cmpi less_than %505, %520, signed : tile<64xi32> -> tile<64xi1>
    %522 = andi %518, %521 : tile<64xi1>
    %523 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %524 = broadcast %523 : tile<1xi32> -> tile<64xi32>
    %525 = muli %505, %524 : tile<64xi32>
    %526 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %527 = broadcast %526 : tile<1xi32> -> tile<64xi32>
    %528 = addi %527, %525 : tile<64xi32>
    %529 = reshape %scratch : tile<ptr<f32>> -> tile<1xptr<f32>>
    %530 = broadcast %529 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %531 = offset %530, %528 : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %result_30, %read_3 = load_ptr_tko weak %531, %522, %c_0_1 token = %wrote
        : tile<64xptr<f32>>, tile<64xi1>, tile<64xf32> -> tile<64xf32>, token
    %result_31 = scan %a dim=0 reverse=false identities=[0.0 : f32] : tile<64xf32> -> tile<64xf32>
        (%x_3: tile<f32>, %acc_2: tile<f32>) {
      %532 = addf %x_3, %acc_2 : tile<f32>
      yield %532 : tile<f32>
    }
    %result_32 = scan %a dim=0 reverse=false identities=[1.0 : f32] : tile<64xf32> -> tile<64xf32>
        (%x_4: tile<f32>, %acc_3: tile<f32>) {
      %533 = mulf %x_4, %acc_3 : tile<f32>
      yield %533 : tile<f32>
    }
    %result_33 = itof %n signed : tile<64xi32> -> tile<64xf32>
    %534 = ftof %a : tile<64xf32> -> tile<64xf16>
    %result_34 = ftof %534 : tile<64xf16> -> tile<64xf32>
    %535 = ftof %a : tile<64xf32> -> tile<64xbf16>
    %result_35 = ftof %535 : tile<64xbf16> -> tile<64xf32>
    %536 = permute %square [1, 0] : tile<8x8xf32> -> tile<8x8xf32>
    %result_36 = reshape %536 : tile<8x8xf32> -> tile<64xf32>
    %537 = reshape %b : tile<64xf32> -> tile<8x8xf32>
    %538 = mmaf %square, %537, %c_0_2 : tile<8x8xf32>, tile<8x8xf32>, tile<8x8xf32>
    %result_37 = reshape %538 : tile<8x8xf32> -> tile<64xf32>
    %539 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %540 = broadcast %539 : tile<1xi32> -> tile<64xi32>
    %541 = remi %n, %540 signed : tile<64xi32>
    %542 = reshape %541 : tile<64xi32> -> tile<8x8xi32>
    %543 = iota : tile<8xi32>
    %544 = reshape %543 : tile<8xi32> -> tile<1x8xi32>
    %545 = reshape %c_1 : tile<i32> -> tile<1x1xi32>
    %546 = broadcast %545 : tile<1x1xi32> -> tile<1x8xi32>
    %547 = muli %544, %546 : tile<1x8xi32>
    %548 = reshape %c_0 : tile<i32> -> tile<1x1xi32>
    %549 = broadcast %548 : tile<1x1xi32> -> tile<1x8xi32>
    %550 = addi %549, %547 : tile<1x8xi32>
    %551 = iota : tile<8xi32>
    %552 = reshape %551 : tile<8xi32> -> tile<8x1xi32>
    %553 = reshape %c_8 : tile<i32> -> tile<1x1xi32>
    %554 = broadcast %553 : tile<1x1xi32> -> tile<8x1xi32>
    %555 = muli %552, %554 : tile<8x1xi32>
    %556 = broadcast %550 : tile<1x8xi32> -> tile<8x8xi32>
    %557 = broadcast %555 : tile<8x1xi32> -> tile<8x8xi32>
    %558 = addi %556, %557 : tile<8x8xi32>
    %559 = reshape %scratch_1 : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %560 = broadcast %559 : tile<1x1xptr<f32>> -> tile<8x8xptr<f32>>
    %561 = offset %560, %558 : tile<8x8xptr<f32>>, tile<8x8xi32> -> tile<8x8xptr<f32>>
    %wrote_1 = store_ptr_tko weak %561, %square token = %read_3
        : tile<8x8xptr<f32>>, tile<8x8xf32> -> token
    %562 = reshape %c_0 : tile<i32> -> tile<1x1xi32>
    %563 = broadcast %562 : tile<1x1xi32> -> tile<8x8xi32>
    %564 = cmpi greater_than_or_equal %542, %563, signed : tile<8x8xi32> -> tile<8x8xi1>
    %565 = reshape %c_8 : tile<i32> -> tile<1x1xi32>
    %566 = broadcast %565 : tile<1x1xi32> -> tile<8x8xi32>
    %567 = cmpi less_than %542, %566, signed : tile<8x8xi32> -> tile<8x8xi1>
    %568 = andi %564, %567 : tile<8x8xi1>
    %569 = reshape %c_1 : tile<i32> -> tile<1x1xi32>
    %570 = broadcast %569 : tile<1x1xi32> -> tile<8x8xi32>
    %571 = muli %542, %570 : tile<8x8xi32>
    %572 = reshape %c_0 : tile<i32> -> tile<1x1xi32>
    %573 = broadcast %572 : tile<1x1xi32> -> tile<8x8xi32>
    %574 = addi %573, %571 : tile<8x8xi32>
    %575 = iota : tile<8xi32>
    %576 = reshape %575 : tile<8xi32> -> tile<8x1xi32>
    %577 = reshape %c_8 : tile<i32> -> tile<1x1xi32>
    %578 = broadcast %577 : tile<1x1xi32> -> tile<8x1xi32>
    %579 = muli %576, %578 : tile<8x1xi32>
    %580 = broadcast %579 : tile<8x1xi32> -> tile<8x8xi32>
    %581 = addi %574, %580 : tile<8x8xi32>
    %582 = reshape %scratch_1 : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %583 = broadcast %582 : tile<1x1xptr<f32>> -> tile<8x8xptr<f32>>
    %584 = offset %583, %581 : tile<8x8xptr<f32>>, tile<8x8xi32> -> tile<8x8xptr<f32>>
    %585, %read_4 = load_ptr_tko weak %584, %568, %c_0_2 token = %wrote_1
        : tile<8x8xptr<f32>>, tile<8x8xi1>, tile<8x8xf32> -> tile<8x8xf32>, token
    %result_38 = reshape %585 : tile<8x8xf32> -> tile<64xf32>
    %586 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %587 = broadcast %586 : tile<1xi32> -> tile<64xi32>
    %588 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %589 = broadcast %588 : tile<1xi32> -> tile<64xi32>
    %590 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %591 = broadcast %590 : tile<1xi32> -> tile<64xi32>
    %592 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %593 = broadcast %592 : tile<1xi32> -> tile<64xi32>
    %594 = mulhii %589, %593 : tile<64xi32>
    %595 = xori %594, %587 : tile<64xi32>
    %596 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %597 = broadcast %596 : tile<1xi32> -> tile<64xi32>
    %598 = xori %595, %597 : tile<64xi32>
    %599 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %600 = broadcast %599 : tile<1xi32> -> tile<64xi32>
    %601 = muli %589, %600 : tile<64xi32>
    %602 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %603 = broadcast %602 : tile<1xi32> -> tile<64xi32>
    %604 = mulhii %i, %603 : tile<64xi32>
    %605 = xori %604, %591 : tile<64xi32>
    %606 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %607 = broadcast %606 : tile<1xi32> -> tile<64xi32>
    %608 = xori %605, %607 : tile<64xi32>
    %609 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %610 = broadcast %609 : tile<1xi32> -> tile<64xi32>
    %611 = muli %i, %610 : tile<64xi32>
    %612 = addi %c_7, %c_2654435769 : tile<i32>
    %613 = addi %c_0_3, %c_3144134277 : tile<i32>
    %614 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %615 = broadcast %614 : tile<1xi32> -> tile<64xi32>
    %616 = mulhii %608, %615 : tile<64xi32>
    %617 = xori %616, %601 : tile<64xi32>
    %618 = reshape %612 : tile<i32> -> tile<1xi32>
    %619 = broadcast %618 : tile<1xi32> -> tile<64xi32>
    %620 = xori %617, %619 : tile<64xi32>
    %621 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %622 = broadcast %621 : tile<1xi32> -> tile<64xi32>
    %623 = muli %608, %622 : tile<64xi32>
    %624 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %625 = broadcast %624 : tile<1xi32> -> tile<64xi32>
    %626 = mulhii %598, %625 : tile<64xi32>
    %627 = xori %626, %611 : tile<64xi32>
    %628 = reshape %613 : tile<i32> -> tile<1xi32>
    %629 = broadcast %628 : tile<1xi32> -> tile<64xi32>
    %630 = xori %627, %629 : tile<64xi32>
    %631 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %632 = broadcast %631 : tile<1xi32> -> tile<64xi32>
    %633 = muli %598, %632 : tile<64xi32>
    %634 = addi %612, %c_2654435769 : tile<i32>
    %635 = addi %613, %c_3144134277 : tile<i32>
    %636 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %637 = broadcast %636 : tile<1xi32> -> tile<64xi32>
    %638 = mulhii %630, %637 : tile<64xi32>
    %639 = xori %638, %623 : tile<64xi32>
    %640 = reshape %634 : tile<i32> -> tile<1xi32>
    %641 = broadcast %640 : tile<1xi32> -> tile<64xi32>
    %642 = xori %639, %641 : tile<64xi32>
    %643 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %644 = broadcast %643 : tile<1xi32> -> tile<64xi32>
    %645 = muli %630, %644 : tile<64xi32>
    %646 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %647 = broadcast %646 : tile<1xi32> -> tile<64xi32>
    %648 = mulhii %620, %647 : tile<64xi32>
    %649 = xori %648, %633 : tile<64xi32>
    %650 = reshape %635 : tile<i32> -> tile<1xi32>
    %651 = broadcast %650 : tile<1xi32> -> tile<64xi32>
    %652 = xori %649, %651 : tile<64xi32>
    %653 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %654 = broadcast %653 : tile<1xi32> -> tile<64xi32>
    %655 = muli %620, %654 : tile<64xi32>
    %656 = addi %634, %c_2654435769 : tile<i32>
    %657 = addi %635, %c_3144134277 : tile<i32>
    %658 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %659 = broadcast %658 : tile<1xi32> -> tile<64xi32>
    %660 = mulhii %652, %659 : tile<64xi32>
    %661 = xori %660, %645 : tile<64xi32>
    %662 = reshape %656 : tile<i32> -> tile<1xi32>
    %663 = broadcast %662 : tile<1xi32> -> tile<64xi32>
    %664 = xori %661, %663 : tile<64xi32>
    %665 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %666 = broadcast %665 : tile<1xi32> -> tile<64xi32>
    %667 = muli %652, %666 : tile<64xi32>
    %668 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %669 = broadcast %668 : tile<1xi32> -> tile<64xi32>
    %670 = mulhii %642, %669 : tile<64xi32>
    %671 = xori %670, %655 : tile<64xi32>
    %672 = reshape %657 : tile<i32> -> tile<1xi32>
    %673 = broadcast %672 : tile<1xi32> -> tile<64xi32>
    %674 = xori %671, %673 : tile<64xi32>
    %675 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %676 = broadcast %675 : tile<1xi32> -> tile<64xi32>
    %677 = muli %642, %676 : tile<64xi32>
    %678 = addi %656, %c_2654435769 : tile<i32>
    %679 = addi %657, %c_3144134277 : tile<i32>
    %680 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %681 = broadcast %680 : tile<1xi32> -> tile<64xi32>
    %682 = mulhii %674, %681 : tile<64xi32>
    %683 = xori %682, %667 : tile<64xi32>
    %684 = reshape %678 : tile<i32> -> tile<1xi32>
    %685 = broadcast %684 : tile<1xi32> -> tile<64xi32>
    %686 = xori %683, %685 : tile<64xi32>
    %687 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %688 = broadcast %687 : tile<1xi32> -> tile<64xi32>
    %689 = muli %674, %688 : tile<64xi32>
    %690 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %691 = broadcast %690 : tile<1xi32> -> tile<64xi32>
    %692 = mulhii %664, %691 : tile<64xi32>
    %693 = xori %692, %677 : tile<64xi32>
    %694 = reshape %679 : tile<i32> -> tile<1xi32>
    %695 = broadcast %694 : tile<1xi32> -> tile<64xi32>
    %696 = xori %693, %695 : tile<64xi32>
    %697 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %698 = broadcast %697 : tile<1xi32> -> tile<64xi32>
    %699 = muli %664, %698 : tile<64xi32>
    %700 = addi %678, %c_2654435769 : tile<i32>
    %701 = addi %679, %c_3144134277 : tile<i32>
    %702 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %703 = broadcast %702 : tile<1xi32> -> tile<64xi32>
    %704 = mulhii %696, %703 : tile<64xi32>
    %705 = xori %704, %689 : tile<64xi32>
    %706 = reshape %700 : tile<i32> -> tile<1xi32>
    %707 = broadcast %706 : tile<1xi32> -> tile<64xi32>
    %708 = xori %705, %707 : tile<64xi32>
    %709 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %710 = broadcast %709 : tile<1xi32> -> tile<64xi32>
    %711 = muli %696, %710 : tile<64xi32>
    %712 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %713 = broadcast %712 : tile<1xi32> -> tile<64xi32>
    %714 = mulhii %686, %713 : tile<64xi32>
    %715 = xori %714, %699 : tile<64xi32>
    %716 = reshape %701 : tile<i32> -> tile<1xi32>
    %717 = broadcast %716 : tile<1xi32> -> tile<64xi32>
    %718 = xori %715, %717 : tile<64xi32>
    %719 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %720 = broadcast %719 : tile<1xi32> -> tile<64xi32>
    %721 = muli %686, %720 : tile<64xi32>
    %722 = addi %700, %c_2654435769 : tile<i32>
    %723 = addi %701, %c_3144134277 : tile<i32>
    %724 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %725 = broadcast %724 : tile<1xi32> -> tile<64xi32>
    %726 = mulhii %718, %725 : tile<64xi32>
    %727 = xori %726, %711 : tile<64xi32>
    %728 = reshape %722 : tile<i32> -> tile<1xi32>
    %729 = broadcast %728 : tile<1xi32> -> tile<64xi32>
    %730 = xori %727, %729 : tile<64xi32>
    %731 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %732 = broadcast %731 : tile<1xi32> -> tile<64xi32>
    %733 = muli %718, %732 : tile<64xi32>
    %734 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %735 = broadcast %734 : tile<1xi32> -> tile<64xi32>
    %736 = mulhii %708, %735 : tile<64xi32>
    %737 = xori %736, %721 : tile<64xi32>
    %738 = reshape %723 : tile<i32> -> tile<1xi32>
    %739 = broadcast %738 : tile<1xi32> -> tile<64xi32>
    %740 = xori %737, %739 : tile<64xi32>
    %741 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %742 = broadcast %741 : tile<1xi32> -> tile<64xi32>
    %743 = muli %708, %742 : tile<64xi32>
    %744 = addi %722, %c_2654435769 : tile<i32>
    %745 = addi %723, %c_3144134277 : tile<i32>
    %746 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %747 = broadcast %746 : tile<1xi32> -> tile<64xi32>
    %748 = mulhii %740, %747 : tile<64xi32>
    %749 = xori %748, %733 : tile<64xi32>
    %750 = reshape %744 : tile<i32> -> tile<1xi32>
    %751 = broadcast %750 : tile<1xi32> -> tile<64xi32>
    %752 = xori %749, %751 : tile<64xi32>
    %753 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %754 = broadcast %753 : tile<1xi32> -> tile<64xi32>
    %755 = mulhii %730, %754 : tile<64xi32>
    %756 = xori %755, %743 : tile<64xi32>
    %757 = reshape %745 : tile<i32> -> tile<1xi32>
    %758 = broadcast %757 : tile<1xi32> -> tile<64xi32>
    %759 = xori %756, %758 : tile<64xi32>
    %760 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %761 = broadcast %760 : tile<1xi32> -> tile<64xi32>
    %762 = muli %730, %761 : tile<64xi32>
    %763 = addi %744, %c_2654435769 : tile<i32>
    %764 = addi %745, %c_3144134277 : tile<i32>
    %765 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %766 = broadcast %765 : tile<1xi32> -> tile<64xi32>
    %767 = muli %759, %766 : tile<64xi32>
    %768 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %769 = broadcast %768 : tile<1xi32> -> tile<64xi32>
    %770 = mulhii %752, %769 : tile<64xi32>
    %771 = xori %770, %762 : tile<64xi32>
    %772 = reshape %764 : tile<i32> -> tile<1xi32>
    %773 = broadcast %772 : tile<1xi32> -> tile<64xi32>
    %774 = xori %771, %773 : tile<64xi32>
    %775 = addi %763, %c_2654435769 : tile<i32>
    %776 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %777 = broadcast %776 : tile<1xi32> -> tile<64xi32>
    %778 = mulhii %774, %777 : tile<64xi32>
    %779 = xori %778, %767 : tile<64xi32>
    %780 = reshape %775 : tile<i32> -> tile<1xi32>
    %781 = broadcast %780 : tile<1xi32> -> tile<64xi32>
    %782 = xori %779, %781 : tile<64xi32>
    %783 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %784 = broadcast %783 : tile<1xi32> -> tile<64xi32>
    %785 = cmpi less_than %782, %784, signed : tile<64xi32> -> tile<64xi1>
    %786 = negi %782 : tile<64xi32>
    %787 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %788 = broadcast %787 : tile<1xi32> -> tile<64xi32>
    %789 = subi %786, %788 : tile<64xi32>
    %790 = select %785, %789, %782 : tile<64xi1>, tile<64xi32>
    %791 = itof %790 signed : tile<64xi32> -> tile<64xf32>
    %792 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %793 = broadcast %792 : tile<1xf32> -> tile<64xf32>
    %result_39 = mulf %791, %793 : tile<64xf32>
    %794 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %795 = broadcast %794 : tile<1xi32> -> tile<64xi32>
    %796 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %797 = broadcast %796 : tile<1xi32> -> tile<64xi32>
    %798 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %799 = broadcast %798 : tile<1xi32> -> tile<64xi32>
    %800 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %801 = broadcast %800 : tile<1xi32> -> tile<64xi32>
    %802 = mulhii %797, %801 : tile<64xi32>
    %803 = xori %802, %795 : tile<64xi32>
    %804 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %805 = broadcast %804 : tile<1xi32> -> tile<64xi32>
    %806 = xori %803, %805 : tile<64xi32>
    %807 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %808 = broadcast %807 : tile<1xi32> -> tile<64xi32>
    %809 = muli %797, %808 : tile<64xi32>
    %810 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %811 = broadcast %810 : tile<1xi32> -> tile<64xi32>
    %812 = mulhii %i, %811 : tile<64xi32>
    %813 = xori %812, %799 : tile<64xi32>
    %814 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %815 = broadcast %814 : tile<1xi32> -> tile<64xi32>
    %816 = xori %813, %815 : tile<64xi32>
    %817 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %818 = broadcast %817 : tile<1xi32> -> tile<64xi32>
    %819 = muli %i, %818 : tile<64xi32>
    %820 = addi %c_7, %c_2654435769 : tile<i32>
    %821 = addi %c_0_3, %c_3144134277 : tile<i32>
    %822 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %823 = broadcast %822 : tile<1xi32> -> tile<64xi32>
    %824 = mulhii %816, %823 : tile<64xi32>
    %825 = xori %824, %809 : tile<64xi32>
    %826 = reshape %820 : tile<i32> -> tile<1xi32>
    %827 = broadcast %826 : tile<1xi32> -> tile<64xi32>
    %828 = xori %825, %827 : tile<64xi32>
    %829 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %830 = broadcast %829 : tile<1xi32> -> tile<64xi32>
    %831 = muli %816, %830 : tile<64xi32>
    %832 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %833 = broadcast %832 : tile<1xi32> -> tile<64xi32>
    %834 = mulhii %806, %833 : tile<64xi32>
    %835 = xori %834, %819 : tile<64xi32>
    %836 = reshape %821 : tile<i32> -> tile<1xi32>
    %837 = broadcast %836 : tile<1xi32> -> tile<64xi32>
    %838 = xori %835, %837 : tile<64xi32>
    %839 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %840 = broadcast %839 : tile<1xi32> -> tile<64xi32>
    %841 = muli %806, %840 : tile<64xi32>
    %842 = addi %820, %c_2654435769 : tile<i32>
    %843 = addi %821, %c_3144134277 : tile<i32>
    %844 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %845 = broadcast %844 : tile<1xi32> -> tile<64xi32>
    %846 = mulhii %838, %845 : tile<64xi32>
    %847 = xori %846, %831 : tile<64xi32>
    %848 = reshape %842 : tile<i32> -> tile<1xi32>
    %849 = broadcast %848 : tile<1xi32> -> tile<64xi32>
    %850 = xori %847, %849 : tile<64xi32>
    %851 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %852 = broadcast %851 : tile<1xi32> -> tile<64xi32>
    %853 = muli %838, %852 : tile<64xi32>
    %854 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %855 = broadcast %854 : tile<1xi32> -> tile<64xi32>
    %856 = mulhii %828, %855 : tile<64xi32>
    %857 = xori %856, %841 : tile<64xi32>
    %858 = reshape %843 : tile<i32> -> tile<1xi32>
    %859 = broadcast %858 : tile<1xi32> -> tile<64xi32>
    %860 = xori %857, %859 : tile<64xi32>
    %861 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %862 = broadcast %861 : tile<1xi32> -> tile<64xi32>
    %863 = muli %828, %862 : tile<64xi32>
    %864 = addi %842, %c_2654435769 : tile<i32>
    %865 = addi %843, %c_3144134277 : tile<i32>
    %866 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %867 = broadcast %866 : tile<1xi32> -> tile<64xi32>
    %868 = mulhii %860, %867 : tile<64xi32>
    %869 = xori %868, %853 : tile<64xi32>
    %870 = reshape %864 : tile<i32> -> tile<1xi32>
    %871 = broadcast %870 : tile<1xi32> -> tile<64xi32>
    %872 = xori %869, %871 : tile<64xi32>
    %873 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %874 = broadcast %873 : tile<1xi32> -> tile<64xi32>
    %875 = muli %860, %874 : tile<64xi32>
    %876 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %877 = broadcast %876 : tile<1xi32> -> tile<64xi32>
    %878 = mulhii %850, %877 : tile<64xi32>
    %879 = xori %878, %863 : tile<64xi32>
    %880 = reshape %865 : tile<i32> -> tile<1xi32>
    %881 = broadcast %880 : tile<1xi32> -> tile<64xi32>
    %882 = xori %879, %881 : tile<64xi32>
    %883 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %884 = broadcast %883 : tile<1xi32> -> tile<64xi32>
    %885 = muli %850, %884 : tile<64xi32>
    %886 = addi %864, %c_2654435769 : tile<i32>
    %887 = addi %865, %c_3144134277 : tile<i32>
    %888 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %889 = broadcast %888 : tile<1xi32> -> tile<64xi32>
    %890 = mulhii %882, %889 : tile<64xi32>
    %891 = xori %890, %875 : tile<64xi32>
    %892 = reshape %886 : tile<i32> -> tile<1xi32>
    %893 = broadcast %892 : tile<1xi32> -> tile<64xi32>
    %894 = xori %891, %893 : tile<64xi32>
    %895 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %896 = broadcast %895 : tile<1xi32> -> tile<64xi32>
    %897 = muli %882, %896 : tile<64xi32>
    %898 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %899 = broadcast %898 : tile<1xi32> -> tile<64xi32>
    %900 = mulhii %872, %899 : tile<64xi32>
    %901 = xori %900, %885 : tile<64xi32>
    %902 = reshape %887 : tile<i32> -> tile<1xi32>
    %903 = broadcast %902 : tile<1xi32> -> tile<64xi32>
    %904 = xori %901, %903 : tile<64xi32>
    %905 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %906 = broadcast %905 : tile<1xi32> -> tile<64xi32>
    %907 = muli %872, %906 : tile<64xi32>
    %908 = addi %886, %c_2654435769 : tile<i32>
    %909 = addi %887, %c_3144134277 : tile<i32>
    %910 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %911 = broadcast %910 : tile<1xi32> -> tile<64xi32>
    %912 = mulhii %904, %911 : tile<64xi32>
    %913 = xori %912, %897 : tile<64xi32>
    %914 = reshape %908 : tile<i32> -> tile<1xi32>
    %915 = broadcast %914 : tile<1xi32> -> tile<64xi32>
    %916 = xori %913, %915 : tile<64xi32>
    %917 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %918 = broadcast %917 : tile<1xi32> -> tile<64xi32>
    %919 = muli %904, %918 : tile<64xi32>
    %920 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %921 = broadcast %920 : tile<1xi32> -> tile<64xi32>
    %922 = mulhii %894, %921 : tile<64xi32>
    %923 = xori %922, %907 : tile<64xi32>
    %924 = reshape %909 : tile<i32> -> tile<1xi32>
    %925 = broadcast %924 : tile<1xi32> -> tile<64xi32>
    %926 = xori %923, %925 : tile<64xi32>
    %927 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %928 = broadcast %927 : tile<1xi32> -> tile<64xi32>
    %929 = muli %894, %928 : tile<64xi32>
    %930 = addi %908, %c_2654435769 : tile<i32>
    %931 = addi %909, %c_3144134277 : tile<i32>
    %932 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %933 = broadcast %932 : tile<1xi32> -> tile<64xi32>
    %934 = mulhii %926, %933 : tile<64xi32>
    %935 = xori %934, %919 : tile<64xi32>
    %936 = reshape %930 : tile<i32> -> tile<1xi32>
    %937 = broadcast %936 : tile<1xi32> -> tile<64xi32>
    %938 = xori %935, %937 : tile<64xi32>
    %939 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %940 = broadcast %939 : tile<1xi32> -> tile<64xi32>
    %941 = muli %926, %940 : tile<64xi32>
    %942 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %943 = broadcast %942 : tile<1xi32> -> tile<64xi32>
    %944 = mulhii %916, %943 : tile<64xi32>
    %945 = xori %944, %929 : tile<64xi32>
    %946 = reshape %931 : tile<i32> -> tile<1xi32>
    %947 = broadcast %946 : tile<1xi32> -> tile<64xi32>
    %948 = xori %945, %947 : tile<64xi32>
    %949 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %950 = broadcast %949 : tile<1xi32> -> tile<64xi32>
    %951 = muli %916, %950 : tile<64xi32>
    %952 = addi %930, %c_2654435769 : tile<i32>
    %953 = addi %931, %c_3144134277 : tile<i32>
    %954 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %955 = broadcast %954 : tile<1xi32> -> tile<64xi32>
    %956 = mulhii %948, %955 : tile<64xi32>
    %957 = xori %956, %941 : tile<64xi32>
    %958 = reshape %952 : tile<i32> -> tile<1xi32>
    %959 = broadcast %958 : tile<1xi32> -> tile<64xi32>
    %960 = xori %957, %959 : tile<64xi32>
    %961 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %962 = broadcast %961 : tile<1xi32> -> tile<64xi32>
    %963 = mulhii %938, %962 : tile<64xi32>
    %964 = xori %963, %951 : tile<64xi32>
    %965 = reshape %953 : tile<i32> -> tile<1xi32>
    %966 = broadcast %965 : tile<1xi32> -> tile<64xi32>
    %967 = xori %964, %966 : tile<64xi32>
    %968 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %969 = broadcast %968 : tile<1xi32> -> tile<64xi32>
    %970 = muli %938, %969 : tile<64xi32>
    %971 = addi %952, %c_2654435769 : tile<i32>
    %972 = addi %953, %c_3144134277 : tile<i32>
    %973 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %974 = broadcast %973 : tile<1xi32> -> tile<64xi32>
    %975 = muli %967, %974 : tile<64xi32>
    %976 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %977 = broadcast %976 : tile<1xi32> -> tile<64xi32>
    %978 = mulhii %960, %977 : tile<64xi32>
    %979 = xori %978, %970 : tile<64xi32>
    %980 = reshape %972 : tile<i32> -> tile<1xi32>
    %981 = broadcast %980 : tile<1xi32> -> tile<64xi32>
    %982 = xori %979, %981 : tile<64xi32>
    %983 = addi %971, %c_2654435769 : tile<i32>
    %984 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %985 = broadcast %984 : tile<1xi32> -> tile<64xi32>
    %986 = mulhii %982, %985 : tile<64xi32>
    %987 = xori %986, %975 : tile<64xi32>
    %988 = reshape %983 : tile<i32> -> tile<1xi32>
    %989 = broadcast %988 : tile<1xi32> -> tile<64xi32>
    %990 = xori %987, %989 : tile<64xi32>
    %991 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %992 = broadcast %991 : tile<1xi32> -> tile<64xi32>
    %993 = muli %982, %992 : tile<64xi32>
    %994 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %995 = broadcast %994 : tile<1xi32> -> tile<64xi32>
    %996 = cmpi less_than %990, %995, signed : tile<64xi32> -> tile<64xi1>
    %997 = negi %990 : tile<64xi32>
    %998 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %999 = broadcast %998 : tile<1xi32> -> tile<64xi32>
    %1000 = subi %997, %999 : tile<64xi32>
    %1001 = select %996, %1000, %990 : tile<64xi1>, tile<64xi32>
    %1002 = itof %1001 signed : tile<64xi32> -> tile<64xf32>
    %1003 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %1004 = broadcast %1003 : tile<1xf32> -> tile<64xf32>
    %1005 = mulf %1002, %1004 : tile<64xf32>
    %1006 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %1007 = broadcast %1006 : tile<1xi32> -> tile<64xi32>
    %1008 = cmpi less_than %993, %1007, signed : tile<64xi32> -> tile<64xi1>
    %1009 = negi %993 : tile<64xi32>
    %1010 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1011 = broadcast %1010 : tile<1xi32> -> tile<64xi32>
    %1012 = subi %1009, %1011 : tile<64xi32>
    %1013 = select %1008, %1012, %993 : tile<64xi1>, tile<64xi32>
    %1014 = itof %1013 signed : tile<64xi32> -> tile<64xf32>
    %1015 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %1016 = broadcast %1015 : tile<1xf32> -> tile<64xf32>
    %1017 = mulf %1014, %1016 : tile<64xf32>
    %1018 = reshape %c_1eminus_07 : tile<f32> -> tile<1xf32>
    %1019 = broadcast %1018 : tile<1xf32> -> tile<64xf32>
    %1020 = maxf %1005, %1019 : tile<64xf32>
    %1021 = log %1020 : tile<64xf32>
    %1022 = reshape %c_minus_2_0 : tile<f32> -> tile<1xf32>
    %1023 = broadcast %1022 : tile<1xf32> -> tile<64xf32>
    %1024 = mulf %1023, %1021 : tile<64xf32>
    %1025 = sqrt %1024 : tile<64xf32>
    %1026 = reshape %c_6_283185307179586 : tile<f32> -> tile<1xf32>
    %1027 = broadcast %1026 : tile<1xf32> -> tile<64xf32>
    %1028 = mulf %1027, %1017 : tile<64xf32>
    %1029 = cos %1028 : tile<64xf32>
    %result_40 = mulf %1025, %1029 : tile<64xf32>
    %1030 = reshape %a : tile<64xf32> -> tile<32x2xf32>
    %1031 = reduce %1030 dim=1 identities=[0.0 : f32] : tile<32x2xf32> -> tile<32xf32>
        (%x_5: tile<f32>, %acc_4: tile<f32>) {
      %1032 = addf %x_5, %acc_4 : tile<f32>
      yield %1032 : tile<f32>
    }
    %1033 = reshape %b : tile<64xf32> -> tile<32x2xf32>
    %1034 = reduce %1033 dim=1 identities=[0xFF800000 : f32] : tile<32x2xf32> -> tile<32xf32>
        (%x_6: tile<f32>, %acc_5: tile<f32>) {
      %1035 = maxf %x_6, %acc_5 : tile<f32>
      yield %1035 : tile<f32>
    }
    %1036 = reshape %1031 : tile<32xf32> -> tile<32x1xf32>
    %1037 = reshape %1034 : tile<32xf32> -> tile<32x1xf32>
    %1038 = cat %1036, %1037 dim = 1 : tile<32x1xf32>, tile<32x1xf32> -> tile<32x2xf32>
    %result_41 = reshape %1038 : tile<32x2xf32> -> tile<64xf32>
    %1039 = reduce %a dim=0 identities=[0.0 : f32] : tile<64xf32> -> tile<f32>
        (%x_7: tile<f32>, %acc_6: tile<f32>) {
      %1040 = addf %x_7, %acc_6 : tile<f32>
      yield %1040 : tile<f32>
    }
    %1041 = reshape %1039 : tile<f32> -> tile<1xf32>
    %result_42 = broadcast %1041 : tile<1xf32> -> tile<64xf32>
    %1042 = reduce %a dim=0 identities=[1.0 : f32] : tile<64xf32> -> tile<f32>
        (%x_8: tile<f32>, %acc_7: tile<f32>) {
      %1043 = mulf %x_8, %acc_7 : tile<f32>
      yield %1043 : tile<f32>
    }
    %1044 = reshape %1042 : tile<f32> -> tile<1xf32>
    %result_43 = broadcast %1044 : tile<1xf32> -> tile<64xf32>
    %1045 = reduce %a dim=0 identities=[0x7F800000 : f32] : tile<64xf32> -> tile<f32>
        (%x_9: tile<f32>, %acc_8: tile<f32>) {
      %1046 = minf %x_9, %acc_8 : tile<f32>
      yield %1046 : tile<f32>
    }
    %1047 = reshape %1045 : tile<f32> -> tile<1xf32>
    %result_44 = broadcast %1047 : tile<1xf32> -> tile<64xf32>
    %1048 = reshape %a : tile<64xf32> -> tile<32x2x1xf32>
    %1049 = extract %1048[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %1050 = extract %1048[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %1051 = extract %1049[%c_0, %c_0, %c_0] : tile<32x1x1xf32> -> tile<32x1x1xf32>
    %1052 = cmpf greater_than ordered %1051, %1050 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %1053 = select %1052, %1051, %1050 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %1054 = cat %1049, %1053 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %1055 = reshape %1054 : tile<32x2x1xf32> -> tile<64xf32>
    %1056 = reshape %1055 : tile<64xf32> -> tile<16x2x2xf32>
    %1057 = extract %1056[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %1058 = extract %1056[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %1059 = extract %1057[%c_0, %c_0, %c_1] : tile<16x1x2xf32> -> tile<16x1x1xf32>
    %1060 = broadcast %1059 : tile<16x1x1xf32> -> tile<16x1x2xf32>
    %1061 = cmpf greater_than ordered %1060, %1058 : tile<16x1x2xf32> -> tile<16x1x2xi1>
    %1062 = select %1061, %1060, %1058 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %1063 = cat %1057, %1062 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %1064 = reshape %1063 : tile<16x2x2xf32> -> tile<64xf32>
    %1065 = reshape %1064 : tile<64xf32> -> tile<8x2x4xf32>
    %1066 = extract %1065[%c_0, %c_0, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %1067 = extract %1065[%c_0, %c_1, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %1068 = extract %1066[%c_0, %c_0, %c_3] : tile<8x1x4xf32> -> tile<8x1x1xf32>
    %1069 = broadcast %1068 : tile<8x1x1xf32> -> tile<8x1x4xf32>
    %1070 = cmpf greater_than ordered %1069, %1067 : tile<8x1x4xf32> -> tile<8x1x4xi1>
    %1071 = select %1070, %1069, %1067 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %1072 = cat %1066, %1071 dim = 1 : tile<8x1x4xf32>, tile<8x1x4xf32> -> tile<8x2x4xf32>
    %1073 = reshape %1072 : tile<8x2x4xf32> -> tile<64xf32>
    %1074 = reshape %1073 : tile<64xf32> -> tile<4x2x8xf32>
    %1075 = extract %1074[%c_0, %c_0, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %1076 = extract %1074[%c_0, %c_1, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %1077 = extract %1075[%c_0, %c_0, %c_7_1] : tile<4x1x8xf32> -> tile<4x1x1xf32>
    %1078 = broadcast %1077 : tile<4x1x1xf32> -> tile<4x1x8xf32>
    %1079 = cmpf greater_than ordered %1078, %1076 : tile<4x1x8xf32> -> tile<4x1x8xi1>
    %1080 = select %1079, %1078, %1076 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %1081 = cat %1075, %1080 dim = 1 : tile<4x1x8xf32>, tile<4x1x8xf32> -> tile<4x2x8xf32>
    %1082 = reshape %1081 : tile<4x2x8xf32> -> tile<64xf32>
    %1083 = reshape %1082 : tile<64xf32> -> tile<2x2x16xf32>
    %1084 = extract %1083[%c_0, %c_0, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %1085 = extract %1083[%c_0, %c_1, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %1086 = extract %1084[%c_0, %c_0, %c_15] : tile<2x1x16xf32> -> tile<2x1x1xf32>
    %1087 = broadcast %1086 : tile<2x1x1xf32> -> tile<2x1x16xf32>
    %1088 = cmpf greater_than ordered %1087, %1085 : tile<2x1x16xf32> -> tile<2x1x16xi1>
    %1089 = select %1088, %1087, %1085 : tile<2x1x16xi1>, tile<2x1x16xf32>
    %1090 = cat %1084, %1089 dim = 1 : tile<2x1x16xf32>, tile<2x1x16xf32> -> tile<2x2x16xf32>
    %1091 = reshape %1090 : tile<2x2x16xf32> -> tile<64xf32>
    %1092 = reshape %1091 : tile<64xf32> -> tile<1x2x32xf32>
    %1093 = extract %1092[%c_0, %c_0, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %1094 = extract %1092[%c_0, %c_1, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %1095 = extract %1093[%c_0, %c_0, %c_31] : tile<1x1x32xf32> -> tile<1x1x1xf32>
    %1096 = broadcast %1095 : tile<1x1x1xf32> -> tile<1x1x32xf32>
    %1097 = cmpf greater_than ordered %1096, %1094 : tile<1x1x32xf32> -> tile<1x1x32xi1>
    %1098 = select %1097, %1096, %1094 : tile<1x1x32xi1>, tile<1x1x32xf32>
    %1099 = cat %1093, %1098 dim = 1 : tile<1x1x32xf32>, tile<1x1x32xf32> -> tile<1x2x32xf32>
    %result_45 = reshape %1099 : tile<1x2x32xf32> -> tile<64xf32>
    %1100 = extract %a[%c_0] : tile<64xf32> -> tile<32xf32>
    %1101 = extract %a[%c_1] : tile<64xf32> -> tile<32xf32>
    %1102 = cmpf greater_than ordered %1100, %1101 : tile<32xf32> -> tile<32xi1>
    %1103 = select %1102, %1100, %1101 : tile<32xi1>, tile<32xf32>
    %1104 = extract %1103[%c_0] : tile<32xf32> -> tile<16xf32>
    %1105 = extract %1103[%c_1] : tile<32xf32> -> tile<16xf32>
    %1106 = cmpf greater_than ordered %1104, %1105 : tile<16xf32> -> tile<16xi1>
    %1107 = select %1106, %1104, %1105 : tile<16xi1>, tile<16xf32>
    %1108 = extract %1107[%c_0] : tile<16xf32> -> tile<8xf32>
    %1109 = extract %1107[%c_1] : tile<16xf32> -> tile<8xf32>
    %1110 = cmpf greater_than ordered %1108, %1109 : tile<8xf32> -> tile<8xi1>
    %1111 = select %1110, %1108, %1109 : tile<8xi1>, tile<8xf32>
    %1112 = extract %1111[%c_0] : tile<8xf32> -> tile<4xf32>
    %1113 = extract %1111[%c_1] : tile<8xf32> -> tile<4xf32>
    %1114 = cmpf greater_than ordered %1112, %1113 : tile<4xf32> -> tile<4xi1>
    %1115 = select %1114, %1112, %1113 : tile<4xi1>, tile<4xf32>
    %1116 = extract %1115[%c_0] : tile<4xf32> -> tile<2xf32>
    %1117 = extract %1115[%c_1] : tile<4xf32> -> tile<2xf32>
    %1118 = cmpf greater_than ordered %1116, %1117 : tile<2xf32> -> tile<2xi1>
    %1119 = select %1118, %1116, %1117 : tile<2xi1>, tile<2xf32>
    %1120 = extract %1119[%c_0] : tile<2xf32> -> tile<1xf32>
    %1121 = extract %1119[%c_1] : tile<2xf32> -> tile<1xf32>
    %1122 = cmpf greater_than ordered %1120, %1121 : tile<1xf32> -> tile<1xi1>
    %1123 = select %1122, %1120, %1121 : tile<1xi1>, tile<1xf32>
    %1124 = reshape %1123 : tile<1xf32> -> tile<f32>
    %1125 = reshape %1124 : tile<f32> -> tile<1xf32>
    %result_46 = broadcast %1125 : tile<1xf32> -> tile<64xf32>
    %1126 = offset %floats, %c_0 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1127 = reshape %1126 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1128 = broadcast %1127 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1129 = offset %1128, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_2 = store_ptr_tko weak %1129, %result token = %read_4
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1130 = offset %floats, %c_64 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1131 = reshape %1130 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1132 = broadcast %1131 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1133 = offset %1132, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_3 = store_ptr_tko weak %1133, %result_1 token = %wrote_2
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1134 = offset %floats, %c_128 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1135 = reshape %1134 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1136 = broadcast %1135 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1137 = offset %1136, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_4 = store_ptr_tko weak %1137, %result_2 token = %wrote_3
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1138 = offset %floats, %c_192 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1139 = reshape %1138 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1140 = broadcast %1139 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1141 = offset %1140, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_5 = store_ptr_tko weak %1141, %result_3 token = %wrote_4
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1142 = offset %floats, %c_256 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1143 = reshape %1142 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1144 = broadcast %1143 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1145 = offset %1144, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_6 = store_ptr_tko weak %1145, %result_4 token = %wrote_5
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1146 = offset %floats, %c_320 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1147 = reshape %1146 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1148 = broadcast %1147 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1149 = offset %1148, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_7 = store_ptr_tko weak %1149, %result_5 token = %wrote_6
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1150 = offset %floats, %c_384 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1151 = reshape %1150 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1152 = broadcast %1151 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1153 = offset %1152, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_8 = store_ptr_tko weak %1153, %result_6 token = %wrote_7
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1154 = offset %floats, %c_448 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1155 = reshape %1154 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1156 = broadcast %1155 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1157 = offset %1156, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_9 = store_ptr_tko weak %1157, %result_7 token = %wrote_8
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1158 = offset %floats, %c_512 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1159 = reshape %1158 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1160 = broadcast %1159 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1161 = offset %1160, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_10 = store_ptr_tko weak %1161, %result_8 token = %wrote_9
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1162 = offset %floats, %c_576 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1163 = reshape %1162 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1164 = broadcast %1163 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1165 = offset %1164, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_11 = store_ptr_tko weak %1165, %result_9 token = %wrote_10
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1166 = offset %floats, %c_640 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1167 = reshape %1166 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1168 = broadcast %1167 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1169 = offset %1168, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_12 = store_ptr_tko weak %1169, %result_10 token = %wrote_11
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1170 = offset %floats, %c_704 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1171 = reshape %1170 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1172 = broadcast %1171 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1173 = offset %1172, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_13 = store_ptr_tko weak %1173, %result_11 token = %wrote_12
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1174 = offset %floats, %c_768 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1175 = reshape %1174 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1176 = broadcast %1175 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1177 = offset %1176, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_14 = store_ptr_tko weak %1177, %result_12 token = %wrote_13
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1178 = offset %floats, %c_832 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1179 = reshape %1178 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1180 = broadcast %1179 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1181 = offset %1180, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_15 = store_ptr_tko weak %1181, %result_13 token = %wrote_14
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1182 = offset %floats, %c_896 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1183 = reshape %1182 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1184 = broadcast %1183 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1185 = offset %1184, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_16 = store_ptr_tko weak %1185, %result_14 token = %wrote_15
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1186 = offset %floats, %c_960 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1187 = reshape %1186 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1188 = broadcast %1187 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1189 = offset %1188, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_17 = store_ptr_tko weak %1189, %result_15 token = %wrote_16
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1190 = offset %floats, %c_1024 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1191 = reshape %1190 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1192 = broadcast %1191 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1193 = offset %1192, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_18 = store_ptr_tko weak %1193, %result_16 token = %wrote_17
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1194 = offset %floats, %c_1088 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1195 = reshape %1194 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1196 = broadcast %1195 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1197 = offset %1196, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_19 = store_ptr_tko weak %1197, %result_17 token = %wrote_18
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1198 = offset %floats, %c_1152 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1199 = reshape %1198 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1200 = broadcast %1199 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1201 = offset %1200, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_20 = store_ptr_tko weak %1201, %result_18 token = %wrote_19
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1202 = offset %floats, %c_1216 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1203 = reshape %1202 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1204 = broadcast %1203 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1205 = offset %1204, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_21 = store_ptr_tko weak %1205, %result_19 token = %wrote_20
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1206 = offset %floats, %c_1280 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1207 = reshape %1206 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1208 = broadcast %1207 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1209 = offset %1208, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_22 = store_ptr_tko weak %1209, %result_20 token = %wrote_21
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1210 = offset %floats, %c_1344 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1211 = reshape %1210 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1212 = broadcast %1211 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1213 = offset %1212, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_23 = store_ptr_tko weak %1213, %result_21 token = %wrote_22
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1214 = offset %floats, %c_1408 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1215 = reshape %1214 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1216 = broadcast %1215 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1217 = offset %1216, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_24 = store_ptr_tko weak %1217, %result_22 token = %wrote_23
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1218 = offset %floats, %c_1472 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1219 = reshape %1218 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1220 = broadcast %1219 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1221 = offset %1220, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_25 = store_ptr_tko weak %1221, %result_23 token = %wrote_24
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1222 = offset %floats, %c_1536 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1223 = reshape %1222 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1224 = broadcast %1223 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1225 = offset %1224, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_26 = store_ptr_tko weak %1225, %result_24 token = %wrote_25
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1226 = offset %floats, %c_1600 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1227 = reshape %1226 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1228 = broadcast %1227 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1229 = offset %1228, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_27 = store_ptr_tko weak %1229, %result_25 token = %wrote_26
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1230 = offset %floats, %c_1664 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1231 = reshape %1230 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1232 = broadcast %1231 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1233 = offset %1232, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_28 = store_ptr_tko weak %1233, %result_26 token = %wrote_27
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1234 = offset %floats, %c_1728 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1235 = reshape %1234 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1236 = broadcast %1235 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1237 = offset %1236, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_29 = store_ptr_tko weak %1237, %result_27 token = %wrote_28
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1238 = offset %floats, %c_1792 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1239 = reshape %1238 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1240 = broadcast %1239 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1241 = offset %1240, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_30 = store_ptr_tko weak %1241, %result_28 token = %wrote_29
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1242 = offset %floats, %c_1856 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1243 = reshape %1242 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1244 = broadcast %1243 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1245 = offset %1244, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_31 = store_ptr_tko weak %1245, %result_29 token = %wrote_30
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1246 = offset %floats, %c_1920 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1247 = reshape %1246 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1248 = broadcast %1247 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1249 = offset %1248, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_32 = store_ptr_tko weak %1249, %result_30 token = %wrote_31
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1250 = offset %floats, %c_1984 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1251 = reshape %1250 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1252 = broadcast %1251 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1253 = offset %1252, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_33 = store_ptr_tko weak %1253, %result_31 token = %wrote_32
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1254 = offset %floats, %c_2048 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1255 = reshape %1254 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1256 = broadcast %1255 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1257 = offset %1256, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_34 = store_ptr_tko weak %1257, %result_32 token = %wrote_33
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1258 = offset %floats, %c_2112 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1259 = reshape %1258 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1260 = broadcast %1259 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1261 = offset %1260, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_35 = store_ptr_tko weak %1261, %result_33 token = %wrote_34
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1262 = offset %floats, %c_2176 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1263 = reshape %1262 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1264 = broadcast %1263 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1265 = offset %1264, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_36 = store_ptr_tko weak %1265, %result_34 token = %wrote_35
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1266 = offset %floats, %c_2240 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1267 = reshape %1266 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1268 = broadcast %1267 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1269 = offset %1268, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_37 = store_ptr_tko weak %1269, %result_35 token = %wrote_36
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1270 = offset %floats, %c_2304 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1271 = reshape %1270 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1272 = broadcast %1271 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1273 = offset %1272, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_38 = store_ptr_tko weak %1273, %result_36 token = %wrote_37
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1274 = offset %floats, %c_2368 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1275 = reshape %1274 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1276 = broadcast %1275 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1277 = offset %1276, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_39 = store_ptr_tko weak %1277, %result_37 token = %wrote_38
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1278 = offset %floats, %c_2432 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1279 = reshape %1278 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1280 = broadcast %1279 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1281 = offset %1280, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_40 = store_ptr_tko weak %1281, %result_38 token = %wrote_39
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1282 = offset %floats, %c_2496 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1283 = reshape %1282 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1284 = broadcast %1283 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1285 = offset %1284, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_41 = store_ptr_tko weak %1285, %result_39 token = %wrote_40
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1286 = offset %floats, %c_2560 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1287 = reshape %1286 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1288 = broadcast %1287 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1289 = offset %1288, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_42 = store_ptr_tko weak %1289, %result_40 token = %wrote_41
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1290 = offset %floats, %c_2624 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1291 = reshape %1290 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1292 = broadcast %1291 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1293 = offset %1292, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_43 = store_ptr_tko weak %1293, %result_41 token = %wrote_42
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1294 = offset %floats, %c_2688 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1295 = reshape %1294 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1296 = broadcast %1295 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1297 = offset %1296, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_44 = store_ptr_tko weak %1297, %result_42 token = %wrote_43
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1298 = offset %floats, %c_2752 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1299 = reshape %1298 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1300 = broadcast %1299 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1301 = offset %1300, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_45 = store_ptr_tko weak %1301, %result_43 token = %wrote_44
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1302 = offset %floats, %c_2816 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1303 = reshape %1302 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1304 = broadcast %1303 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1305 = offset %1304, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_46 = store_ptr_tko weak %1305, %result_44 token = %wrote_45
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1306 = offset %floats, %c_2880 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1307 = reshape %1306 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1308 = broadcast %1307 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1309 = offset %1308, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_47 = store_ptr_tko weak %1309, %result_45 token = %wrote_46
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1310 = offset %floats, %c_2944 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1311 = reshape %1310 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1312 = broadcast %1311 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1313 = offset %1312, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_48 = store_ptr_tko weak %1313, %result_46 token = %wrote_47
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1314 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1315 = broadcast %1314 : tile<1xi32> -> tile<64xi32>
    %result_47 = addi %n, %1315 : tile<64xi32>
    %1316 = muli %n, %n : tile<64xi32>
    %result_48 = subi %n, %1316 : tile<64xi32>
    %1317 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1318 = broadcast %1317 : tile<1xi32> -> tile<64xi32>
    %result_49 = divi %n, %1318 signed : tile<64xi32>
    %1319 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1320 = broadcast %1319 : tile<1xi32> -> tile<64xi32>
    %result_50 = remi %n, %1320 signed : tile<64xi32>
    %1321 = reshape %c_5 : tile<i32> -> tile<1xi32>
    %1322 = broadcast %1321 : tile<1xi32> -> tile<64xi32>
    %result_51 = andi %n, %1322 : tile<64xi32>
    %1323 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1324 = broadcast %1323 : tile<1xi32> -> tile<64xi32>
    %result_52 = ori %n, %1324 : tile<64xi32>
    %1325 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1326 = broadcast %1325 : tile<1xi32> -> tile<64xi32>
    %result_53 = xori %n, %1326 : tile<64xi32>
    %result_54 = xori %n, %c_minus_1 : tile<64xi32>
    %1327 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1328 = broadcast %1327 : tile<1xi32> -> tile<64xi32>
    %result_55 = shli %n, %1328 : tile<64xi32>
    %1329 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1330 = broadcast %1329 : tile<1xi32> -> tile<64xi32>
    %result_56 = shri %n, %1330 signed : tile<64xi32>
    %result_57 = negi %n : tile<64xi32>
    %result_58 = absi %n : tile<64xi32>
    %1331 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1332 = broadcast %1331 : tile<1xi32> -> tile<64xi32>
    %result_59 = maxi %n, %1332 signed : tile<64xi32>
    %result_60 = ftoi %a signed : tile<64xf32> -> tile<64xi32>
    %1333 = cmpf less_than ordered %a, %b : tile<64xf32> -> tile<64xi1>
    %result_61 = exti %1333 unsigned : tile<64xi1> -> tile<64xi32>
    %1334 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1335 = broadcast %1334 : tile<1xi32> -> tile<64xi32>
    %1336 = cmpi not_equal %n, %1335, signed : tile<64xi32> -> tile<64xi1>
    %result_62 = exti %1336 unsigned : tile<64xi1> -> tile<64xi32>
    %1337 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %1338 = broadcast %1337 : tile<1xi32> -> tile<64xi32>
    %1339 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %1340 = broadcast %1339 : tile<1xi32> -> tile<64xi32>
    %1341 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %1342 = broadcast %1341 : tile<1xi32> -> tile<64xi32>
    %1343 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1344 = broadcast %1343 : tile<1xi32> -> tile<64xi32>
    %1345 = mulhii %1340, %1344 : tile<64xi32>
    %1346 = xori %1345, %1338 : tile<64xi32>
    %1347 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %1348 = broadcast %1347 : tile<1xi32> -> tile<64xi32>
    %1349 = xori %1346, %1348 : tile<64xi32>
    %1350 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1351 = broadcast %1350 : tile<1xi32> -> tile<64xi32>
    %1352 = muli %1340, %1351 : tile<64xi32>
    %1353 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1354 = broadcast %1353 : tile<1xi32> -> tile<64xi32>
    %1355 = mulhii %i, %1354 : tile<64xi32>
    %1356 = xori %1355, %1342 : tile<64xi32>
    %1357 = reshape %c_0_3 : tile<i32> -> tile<1xi32>
    %1358 = broadcast %1357 : tile<1xi32> -> tile<64xi32>
    %1359 = xori %1356, %1358 : tile<64xi32>
    %1360 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1361 = broadcast %1360 : tile<1xi32> -> tile<64xi32>
    %1362 = muli %i, %1361 : tile<64xi32>
    %1363 = addi %c_7, %c_2654435769 : tile<i32>
    %1364 = addi %c_0_3, %c_3144134277 : tile<i32>
    %1365 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1366 = broadcast %1365 : tile<1xi32> -> tile<64xi32>
    %1367 = mulhii %1359, %1366 : tile<64xi32>
    %1368 = xori %1367, %1352 : tile<64xi32>
    %1369 = reshape %1363 : tile<i32> -> tile<1xi32>
    %1370 = broadcast %1369 : tile<1xi32> -> tile<64xi32>
    %1371 = xori %1368, %1370 : tile<64xi32>
    %1372 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1373 = broadcast %1372 : tile<1xi32> -> tile<64xi32>
    %1374 = muli %1359, %1373 : tile<64xi32>
    %1375 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1376 = broadcast %1375 : tile<1xi32> -> tile<64xi32>
    %1377 = mulhii %1349, %1376 : tile<64xi32>
    %1378 = xori %1377, %1362 : tile<64xi32>
    %1379 = reshape %1364 : tile<i32> -> tile<1xi32>
    %1380 = broadcast %1379 : tile<1xi32> -> tile<64xi32>
    %1381 = xori %1378, %1380 : tile<64xi32>
    %1382 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1383 = broadcast %1382 : tile<1xi32> -> tile<64xi32>
    %1384 = muli %1349, %1383 : tile<64xi32>
    %1385 = addi %1363, %c_2654435769 : tile<i32>
    %1386 = addi %1364, %c_3144134277 : tile<i32>
    %1387 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1388 = broadcast %1387 : tile<1xi32> -> tile<64xi32>
    %1389 = mulhii %1381, %1388 : tile<64xi32>
    %1390 = xori %1389, %1374 : tile<64xi32>
    %1391 = reshape %1385 : tile<i32> -> tile<1xi32>
    %1392 = broadcast %1391 : tile<1xi32> -> tile<64xi32>
    %1393 = xori %1390, %1392 : tile<64xi32>
    %1394 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1395 = broadcast %1394 : tile<1xi32> -> tile<64xi32>
    %1396 = muli %1381, %1395 : tile<64xi32>
    %1397 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1398 = broadcast %1397 : tile<1xi32> -> tile<64xi32>
    %1399 = mulhii %1371, %1398 : tile<64xi32>
    %1400 = xori %1399, %1384 : tile<64xi32>
    %1401 = reshape %1386 : tile<i32> -> tile<1xi32>
    %1402 = broadcast %1401 : tile<1xi32> -> tile<64xi32>
    %1403 = xori %1400, %1402 : tile<64xi32>
    %1404 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1405 = broadcast %1404 : tile<1xi32> -> tile<64xi32>
    %1406 = muli %1371, %1405 : tile<64xi32>
    %1407 = addi %1385, %c_2654435769 : tile<i32>
    %1408 = addi %1386, %c_3144134277 : tile<i32>
    %1409 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1410 = broadcast %1409 : tile<1xi32> -> tile<64xi32>
    %1411 = mulhii %1403, %1410 : tile<64xi32>
    %1412 = xori %1411, %1396 : tile<64xi32>
    %1413 = reshape %1407 : tile<i32> -> tile<1xi32>
    %1414 = broadcast %1413 : tile<1xi32> -> tile<64xi32>
    %1415 = xori %1412, %1414 : tile<64xi32>
    %1416 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1417 = broadcast %1416 : tile<1xi32> -> tile<64xi32>
    %1418 = muli %1403, %1417 : tile<64xi32>
    %1419 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1420 = broadcast %1419 : tile<1xi32> -> tile<64xi32>
    %1421 = mulhii %1393, %1420 : tile<64xi32>
    %1422 = xori %1421, %1406 : tile<64xi32>
    %1423 = reshape %1408 : tile<i32> -> tile<1xi32>
    %1424 = broadcast %1423 : tile<1xi32> -> tile<64xi32>
    %1425 = xori %1422, %1424 : tile<64xi32>
    %1426 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1427 = broadcast %1426 : tile<1xi32> -> tile<64xi32>
    %1428 = muli %1393, %1427 : tile<64xi32>
    %1429 = addi %1407, %c_2654435769 : tile<i32>
    %1430 = addi %1408, %c_3144134277 : tile<i32>
    %1431 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1432 = broadcast %1431 : tile<1xi32> -> tile<64xi32>
    %1433 = mulhii %1425, %1432 : tile<64xi32>
    %1434 = xori %1433, %1418 : tile<64xi32>
    %1435 = reshape %1429 : tile<i32> -> tile<1xi32>
    %1436 = broadcast %1435 : tile<1xi32> -> tile<64xi32>
    %1437 = xori %1434, %1436 : tile<64xi32>
    %1438 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1439 = broadcast %1438 : tile<1xi32> -> tile<64xi32>
    %1440 = muli %1425, %1439 : tile<64xi32>
    %1441 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1442 = broadcast %1441 : tile<1xi32> -> tile<64xi32>
    %1443 = mulhii %1415, %1442 : tile<64xi32>
    %1444 = xori %1443, %1428 : tile<64xi32>
    %1445 = reshape %1430 : tile<i32> -> tile<1xi32>
    %1446 = broadcast %1445 : tile<1xi32> -> tile<64xi32>
    %1447 = xori %1444, %1446 : tile<64xi32>
    %1448 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1449 = broadcast %1448 : tile<1xi32> -> tile<64xi32>
    %1450 = muli %1415, %1449 : tile<64xi32>
    %1451 = addi %1429, %c_2654435769 : tile<i32>
    %1452 = addi %1430, %c_3144134277 : tile<i32>
    %1453 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1454 = broadcast %1453 : tile<1xi32> -> tile<64xi32>
    %1455 = mulhii %1447, %1454 : tile<64xi32>
    %1456 = xori %1455, %1440 : tile<64xi32>
    %1457 = reshape %1451 : tile<i32> -> tile<1xi32>
    %1458 = broadcast %1457 : tile<1xi32> -> tile<64xi32>
    %1459 = xori %1456, %1458 : tile<64xi32>
    %1460 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1461 = broadcast %1460 : tile<1xi32> -> tile<64xi32>
    %1462 = muli %1447, %1461 : tile<64xi32>
    %1463 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1464 = broadcast %1463 : tile<1xi32> -> tile<64xi32>
    %1465 = mulhii %1437, %1464 : tile<64xi32>
    %1466 = xori %1465, %1450 : tile<64xi32>
    %1467 = reshape %1452 : tile<i32> -> tile<1xi32>
    %1468 = broadcast %1467 : tile<1xi32> -> tile<64xi32>
    %1469 = xori %1466, %1468 : tile<64xi32>
    %1470 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1471 = broadcast %1470 : tile<1xi32> -> tile<64xi32>
    %1472 = muli %1437, %1471 : tile<64xi32>
    %1473 = addi %1451, %c_2654435769 : tile<i32>
    %1474 = addi %1452, %c_3144134277 : tile<i32>
    %1475 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1476 = broadcast %1475 : tile<1xi32> -> tile<64xi32>
    %1477 = mulhii %1469, %1476 : tile<64xi32>
    %1478 = xori %1477, %1462 : tile<64xi32>
    %1479 = reshape %1473 : tile<i32> -> tile<1xi32>
    %1480 = broadcast %1479 : tile<1xi32> -> tile<64xi32>
    %1481 = xori %1478, %1480 : tile<64xi32>
    %1482 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1483 = broadcast %1482 : tile<1xi32> -> tile<64xi32>
    %1484 = muli %1469, %1483 : tile<64xi32>
    %1485 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1486 = broadcast %1485 : tile<1xi32> -> tile<64xi32>
    %1487 = mulhii %1459, %1486 : tile<64xi32>
    %1488 = xori %1487, %1472 : tile<64xi32>
    %1489 = reshape %1474 : tile<i32> -> tile<1xi32>
    %1490 = broadcast %1489 : tile<1xi32> -> tile<64xi32>
    %1491 = xori %1488, %1490 : tile<64xi32>
    %1492 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1493 = broadcast %1492 : tile<1xi32> -> tile<64xi32>
    %1494 = muli %1459, %1493 : tile<64xi32>
    %1495 = addi %1473, %c_2654435769 : tile<i32>
    %1496 = addi %1474, %c_3144134277 : tile<i32>
    %1497 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1498 = broadcast %1497 : tile<1xi32> -> tile<64xi32>
    %1499 = mulhii %1491, %1498 : tile<64xi32>
    %1500 = xori %1499, %1484 : tile<64xi32>
    %1501 = reshape %1495 : tile<i32> -> tile<1xi32>
    %1502 = broadcast %1501 : tile<1xi32> -> tile<64xi32>
    %1503 = xori %1500, %1502 : tile<64xi32>
    %1504 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1505 = broadcast %1504 : tile<1xi32> -> tile<64xi32>
    %1506 = mulhii %1481, %1505 : tile<64xi32>
    %1507 = xori %1506, %1494 : tile<64xi32>
    %1508 = reshape %1496 : tile<i32> -> tile<1xi32>
    %1509 = broadcast %1508 : tile<1xi32> -> tile<64xi32>
    %1510 = xori %1507, %1509 : tile<64xi32>
    %1511 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1512 = broadcast %1511 : tile<1xi32> -> tile<64xi32>
    %1513 = muli %1481, %1512 : tile<64xi32>
    %1514 = addi %1495, %c_2654435769 : tile<i32>
    %1515 = addi %1496, %c_3144134277 : tile<i32>
    %1516 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1517 = broadcast %1516 : tile<1xi32> -> tile<64xi32>
    %1518 = muli %1510, %1517 : tile<64xi32>
    %1519 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1520 = broadcast %1519 : tile<1xi32> -> tile<64xi32>
    %1521 = mulhii %1503, %1520 : tile<64xi32>
    %1522 = xori %1521, %1513 : tile<64xi32>
    %1523 = reshape %1515 : tile<i32> -> tile<1xi32>
    %1524 = broadcast %1523 : tile<1xi32> -> tile<64xi32>
    %1525 = xori %1522, %1524 : tile<64xi32>
    %1526 = addi %1514, %c_2654435769 : tile<i32>
    %1527 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1528 = broadcast %1527 : tile<1xi32> -> tile<64xi32>
    %1529 = mulhii %1525, %1528 : tile<64xi32>
    %1530 = xori %1529, %1518 : tile<64xi32>
    %1531 = reshape %1526 : tile<i32> -> tile<1xi32>
    %1532 = broadcast %1531 : tile<1xi32> -> tile<64xi32>
    %result_63 = xori %1530, %1532 : tile<64xi32>
    %result_64 = scan %n dim=0 reverse=false identities=[0 : i32] : tile<64xi32> -> tile<64xi32>
        (%x_10: tile<i32>, %acc_9: tile<i32>) {
      %1533 = addi %x_10, %acc_9 : tile<i32>
      yield %1533 : tile<i32>
    }
    %1534 = iota : tile<32xi32>
    %1535 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1536 = broadcast %1535 : tile<1xi32> -> tile<32xi32>
    %1537 = muli %1534, %1536 : tile<32xi32>
    %1538 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1539 = broadcast %1538 : tile<1xi32> -> tile<32xi32>
    %1540 = divi %1537, %1539 signed : tile<32xi32>
    %1541 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1542 = broadcast %1541 : tile<1xi32> -> tile<32xi32>
    %1543 = remi %1540, %1542 signed : tile<32xi32>
    %1544 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1545 = broadcast %1544 : tile<1xi32> -> tile<32xi32>
    %1546 = cmpi equal %1543, %1545, signed : tile<32xi32> -> tile<32xi1>
    %1547 = reshape %1546 : tile<32xi1> -> tile<32x1x1xi1>
    %1548 = reshape %n : tile<64xi32> -> tile<32x2x1xi32>
    %1549 = extract %1548[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1550 = extract %1548[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1551 = cmpi greater_than %1549, %1550, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1552 = xori %1551, %1547 : tile<32x1x1xi1>
    %1553 = select %1552, %1550, %1549 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1554 = select %1552, %1549, %1550 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1555 = cat %1553, %1554 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1556 = reshape %1555 : tile<32x2x1xi32> -> tile<64xi32>
    %1557 = iota : tile<16xi32>
    %1558 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1559 = broadcast %1558 : tile<1xi32> -> tile<16xi32>
    %1560 = muli %1557, %1559 : tile<16xi32>
    %1561 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1562 = broadcast %1561 : tile<1xi32> -> tile<16xi32>
    %1563 = divi %1560, %1562 signed : tile<16xi32>
    %1564 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1565 = broadcast %1564 : tile<1xi32> -> tile<16xi32>
    %1566 = remi %1563, %1565 signed : tile<16xi32>
    %1567 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1568 = broadcast %1567 : tile<1xi32> -> tile<16xi32>
    %1569 = cmpi equal %1566, %1568, signed : tile<16xi32> -> tile<16xi1>
    %1570 = reshape %1569 : tile<16xi1> -> tile<16x1x1xi1>
    %1571 = reshape %1556 : tile<64xi32> -> tile<16x2x2xi32>
    %1572 = extract %1571[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1573 = extract %1571[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1574 = cmpi greater_than %1572, %1573, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1575 = broadcast %1570 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1576 = xori %1574, %1575 : tile<16x1x2xi1>
    %1577 = select %1576, %1573, %1572 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1578 = select %1576, %1572, %1573 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1579 = cat %1577, %1578 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1580 = reshape %1579 : tile<16x2x2xi32> -> tile<64xi32>
    %1581 = iota : tile<32xi32>
    %1582 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1583 = broadcast %1582 : tile<1xi32> -> tile<32xi32>
    %1584 = muli %1581, %1583 : tile<32xi32>
    %1585 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1586 = broadcast %1585 : tile<1xi32> -> tile<32xi32>
    %1587 = divi %1584, %1586 signed : tile<32xi32>
    %1588 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1589 = broadcast %1588 : tile<1xi32> -> tile<32xi32>
    %1590 = remi %1587, %1589 signed : tile<32xi32>
    %1591 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1592 = broadcast %1591 : tile<1xi32> -> tile<32xi32>
    %1593 = cmpi equal %1590, %1592, signed : tile<32xi32> -> tile<32xi1>
    %1594 = reshape %1593 : tile<32xi1> -> tile<32x1x1xi1>
    %1595 = reshape %1580 : tile<64xi32> -> tile<32x2x1xi32>
    %1596 = extract %1595[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1597 = extract %1595[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1598 = cmpi greater_than %1596, %1597, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1599 = xori %1598, %1594 : tile<32x1x1xi1>
    %1600 = select %1599, %1597, %1596 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1601 = select %1599, %1596, %1597 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1602 = cat %1600, %1601 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1603 = reshape %1602 : tile<32x2x1xi32> -> tile<64xi32>
    %1604 = iota : tile<8xi32>
    %1605 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1606 = broadcast %1605 : tile<1xi32> -> tile<8xi32>
    %1607 = muli %1604, %1606 : tile<8xi32>
    %1608 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1609 = broadcast %1608 : tile<1xi32> -> tile<8xi32>
    %1610 = divi %1607, %1609 signed : tile<8xi32>
    %1611 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1612 = broadcast %1611 : tile<1xi32> -> tile<8xi32>
    %1613 = remi %1610, %1612 signed : tile<8xi32>
    %1614 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1615 = broadcast %1614 : tile<1xi32> -> tile<8xi32>
    %1616 = cmpi equal %1613, %1615, signed : tile<8xi32> -> tile<8xi1>
    %1617 = reshape %1616 : tile<8xi1> -> tile<8x1x1xi1>
    %1618 = reshape %1603 : tile<64xi32> -> tile<8x2x4xi32>
    %1619 = extract %1618[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1620 = extract %1618[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1621 = cmpi greater_than %1619, %1620, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1622 = broadcast %1617 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1623 = xori %1621, %1622 : tile<8x1x4xi1>
    %1624 = select %1623, %1620, %1619 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1625 = select %1623, %1619, %1620 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1626 = cat %1624, %1625 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1627 = reshape %1626 : tile<8x2x4xi32> -> tile<64xi32>
    %1628 = iota : tile<16xi32>
    %1629 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1630 = broadcast %1629 : tile<1xi32> -> tile<16xi32>
    %1631 = muli %1628, %1630 : tile<16xi32>
    %1632 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1633 = broadcast %1632 : tile<1xi32> -> tile<16xi32>
    %1634 = divi %1631, %1633 signed : tile<16xi32>
    %1635 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1636 = broadcast %1635 : tile<1xi32> -> tile<16xi32>
    %1637 = remi %1634, %1636 signed : tile<16xi32>
    %1638 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1639 = broadcast %1638 : tile<1xi32> -> tile<16xi32>
    %1640 = cmpi equal %1637, %1639, signed : tile<16xi32> -> tile<16xi1>
    %1641 = reshape %1640 : tile<16xi1> -> tile<16x1x1xi1>
    %1642 = reshape %1627 : tile<64xi32> -> tile<16x2x2xi32>
    %1643 = extract %1642[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1644 = extract %1642[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1645 = cmpi greater_than %1643, %1644, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1646 = broadcast %1641 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1647 = xori %1645, %1646 : tile<16x1x2xi1>
    %1648 = select %1647, %1644, %1643 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1649 = select %1647, %1643, %1644 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1650 = cat %1648, %1649 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1651 = reshape %1650 : tile<16x2x2xi32> -> tile<64xi32>
    %1652 = iota : tile<32xi32>
    %1653 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1654 = broadcast %1653 : tile<1xi32> -> tile<32xi32>
    %1655 = muli %1652, %1654 : tile<32xi32>
    %1656 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1657 = broadcast %1656 : tile<1xi32> -> tile<32xi32>
    %1658 = divi %1655, %1657 signed : tile<32xi32>
    %1659 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1660 = broadcast %1659 : tile<1xi32> -> tile<32xi32>
    %1661 = remi %1658, %1660 signed : tile<32xi32>
    %1662 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1663 = broadcast %1662 : tile<1xi32> -> tile<32xi32>
    %1664 = cmpi equal %1661, %1663, signed : tile<32xi32> -> tile<32xi1>
    %1665 = reshape %1664 : tile<32xi1> -> tile<32x1x1xi1>
    %1666 = reshape %1651 : tile<64xi32> -> tile<32x2x1xi32>
    %1667 = extract %1666[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1668 = extract %1666[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1669 = cmpi greater_than %1667, %1668, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1670 = xori %1669, %1665 : tile<32x1x1xi1>
    %1671 = select %1670, %1668, %1667 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1672 = select %1670, %1667, %1668 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1673 = cat %1671, %1672 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1674 = reshape %1673 : tile<32x2x1xi32> -> tile<64xi32>
    %1675 = iota : tile<4xi32>
    %1676 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1677 = broadcast %1676 : tile<1xi32> -> tile<4xi32>
    %1678 = muli %1675, %1677 : tile<4xi32>
    %1679 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1680 = broadcast %1679 : tile<1xi32> -> tile<4xi32>
    %1681 = divi %1678, %1680 signed : tile<4xi32>
    %1682 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1683 = broadcast %1682 : tile<1xi32> -> tile<4xi32>
    %1684 = remi %1681, %1683 signed : tile<4xi32>
    %1685 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1686 = broadcast %1685 : tile<1xi32> -> tile<4xi32>
    %1687 = cmpi equal %1684, %1686, signed : tile<4xi32> -> tile<4xi1>
    %1688 = reshape %1687 : tile<4xi1> -> tile<4x1x1xi1>
    %1689 = reshape %1674 : tile<64xi32> -> tile<4x2x8xi32>
    %1690 = extract %1689[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1691 = extract %1689[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1692 = cmpi greater_than %1690, %1691, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1693 = broadcast %1688 : tile<4x1x1xi1> -> tile<4x1x8xi1>
    %1694 = xori %1692, %1693 : tile<4x1x8xi1>
    %1695 = select %1694, %1691, %1690 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1696 = select %1694, %1690, %1691 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1697 = cat %1695, %1696 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1698 = reshape %1697 : tile<4x2x8xi32> -> tile<64xi32>
    %1699 = iota : tile<8xi32>
    %1700 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1701 = broadcast %1700 : tile<1xi32> -> tile<8xi32>
    %1702 = muli %1699, %1701 : tile<8xi32>
    %1703 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1704 = broadcast %1703 : tile<1xi32> -> tile<8xi32>
    %1705 = divi %1702, %1704 signed : tile<8xi32>
    %1706 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1707 = broadcast %1706 : tile<1xi32> -> tile<8xi32>
    %1708 = remi %1705, %1707 signed : tile<8xi32>
    %1709 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1710 = broadcast %1709 : tile<1xi32> -> tile<8xi32>
    %1711 = cmpi equal %1708, %1710, signed : tile<8xi32> -> tile<8xi1>
    %1712 = reshape %1711 : tile<8xi1> -> tile<8x1x1xi1>
    %1713 = reshape %1698 : tile<64xi32> -> tile<8x2x4xi32>
    %1714 = extract %1713[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1715 = extract %1713[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1716 = cmpi greater_than %1714, %1715, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1717 = broadcast %1712 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1718 = xori %1716, %1717 : tile<8x1x4xi1>
    %1719 = select %1718, %1715, %1714 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1720 = select %1718, %1714, %1715 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1721 = cat %1719, %1720 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1722 = reshape %1721 : tile<8x2x4xi32> -> tile<64xi32>
    %1723 = iota : tile<16xi32>
    %1724 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1725 = broadcast %1724 : tile<1xi32> -> tile<16xi32>
    %1726 = muli %1723, %1725 : tile<16xi32>
    %1727 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1728 = broadcast %1727 : tile<1xi32> -> tile<16xi32>
    %1729 = divi %1726, %1728 signed : tile<16xi32>
    %1730 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1731 = broadcast %1730 : tile<1xi32> -> tile<16xi32>
    %1732 = remi %1729, %1731 signed : tile<16xi32>
    %1733 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1734 = broadcast %1733 : tile<1xi32> -> tile<16xi32>
    %1735 = cmpi equal %1732, %1734, signed : tile<16xi32> -> tile<16xi1>
    %1736 = reshape %1735 : tile<16xi1> -> tile<16x1x1xi1>
    %1737 = reshape %1722 : tile<64xi32> -> tile<16x2x2xi32>
    %1738 = extract %1737[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1739 = extract %1737[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1740 = cmpi greater_than %1738, %1739, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1741 = broadcast %1736 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1742 = xori %1740, %1741 : tile<16x1x2xi1>
    %1743 = select %1742, %1739, %1738 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1744 = select %1742, %1738, %1739 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1745 = cat %1743, %1744 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1746 = reshape %1745 : tile<16x2x2xi32> -> tile<64xi32>
    %1747 = iota : tile<32xi32>
    %1748 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1749 = broadcast %1748 : tile<1xi32> -> tile<32xi32>
    %1750 = muli %1747, %1749 : tile<32xi32>
    %1751 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1752 = broadcast %1751 : tile<1xi32> -> tile<32xi32>
    %1753 = divi %1750, %1752 signed : tile<32xi32>
    %1754 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1755 = broadcast %1754 : tile<1xi32> -> tile<32xi32>
    %1756 = remi %1753, %1755 signed : tile<32xi32>
    %1757 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1758 = broadcast %1757 : tile<1xi32> -> tile<32xi32>
    %1759 = cmpi equal %1756, %1758, signed : tile<32xi32> -> tile<32xi1>
    %1760 = reshape %1759 : tile<32xi1> -> tile<32x1x1xi1>
    %1761 = reshape %1746 : tile<64xi32> -> tile<32x2x1xi32>
    %1762 = extract %1761[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1763 = extract %1761[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1764 = cmpi greater_than %1762, %1763, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1765 = xori %1764, %1760 : tile<32x1x1xi1>
    %1766 = select %1765, %1763, %1762 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1767 = select %1765, %1762, %1763 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1768 = cat %1766, %1767 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1769 = reshape %1768 : tile<32x2x1xi32> -> tile<64xi32>
    %1770 = iota : tile<2xi32>
    %1771 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1772 = broadcast %1771 : tile<1xi32> -> tile<2xi32>
    %1773 = muli %1770, %1772 : tile<2xi32>
    %1774 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1775 = broadcast %1774 : tile<1xi32> -> tile<2xi32>
    %1776 = divi %1773, %1775 signed : tile<2xi32>
    %1777 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1778 = broadcast %1777 : tile<1xi32> -> tile<2xi32>
    %1779 = remi %1776, %1778 signed : tile<2xi32>
    %1780 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1781 = broadcast %1780 : tile<1xi32> -> tile<2xi32>
    %1782 = cmpi equal %1779, %1781, signed : tile<2xi32> -> tile<2xi1>
    %1783 = reshape %1782 : tile<2xi1> -> tile<2x1x1xi1>
    %1784 = reshape %1769 : tile<64xi32> -> tile<2x2x16xi32>
    %1785 = extract %1784[%c_0, %c_0, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1786 = extract %1784[%c_0, %c_1, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1787 = cmpi greater_than %1785, %1786, signed : tile<2x1x16xi32> -> tile<2x1x16xi1>
    %1788 = broadcast %1783 : tile<2x1x1xi1> -> tile<2x1x16xi1>
    %1789 = xori %1787, %1788 : tile<2x1x16xi1>
    %1790 = select %1789, %1786, %1785 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1791 = select %1789, %1785, %1786 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1792 = cat %1790, %1791 dim = 1 : tile<2x1x16xi32>, tile<2x1x16xi32> -> tile<2x2x16xi32>
    %1793 = reshape %1792 : tile<2x2x16xi32> -> tile<64xi32>
    %1794 = iota : tile<4xi32>
    %1795 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1796 = broadcast %1795 : tile<1xi32> -> tile<4xi32>
    %1797 = muli %1794, %1796 : tile<4xi32>
    %1798 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1799 = broadcast %1798 : tile<1xi32> -> tile<4xi32>
    %1800 = divi %1797, %1799 signed : tile<4xi32>
    %1801 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1802 = broadcast %1801 : tile<1xi32> -> tile<4xi32>
    %1803 = remi %1800, %1802 signed : tile<4xi32>
    %1804 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1805 = broadcast %1804 : tile<1xi32> -> tile<4xi32>
    %1806 = cmpi equal %1803, %1805, signed : tile<4xi32> -> tile<4xi1>
    %1807 = reshape %1806 : tile<4xi1> -> tile<4x1x1xi1>
    %1808 = reshape %1793 : tile<64xi32> -> tile<4x2x8xi32>
    %1809 = extract %1808[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1810 = extract %1808[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1811 = cmpi greater_than %1809, %1810, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1812 = broadcast %1807 : tile<4x1x1xi1> -> tile<4x1x8xi1>
    %1813 = xori %1811, %1812 : tile<4x1x8xi1>
    %1814 = select %1813, %1810, %1809 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1815 = select %1813, %1809, %1810 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1816 = cat %1814, %1815 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1817 = reshape %1816 : tile<4x2x8xi32> -> tile<64xi32>
    %1818 = iota : tile<8xi32>
    %1819 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1820 = broadcast %1819 : tile<1xi32> -> tile<8xi32>
    %1821 = muli %1818, %1820 : tile<8xi32>
    %1822 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1823 = broadcast %1822 : tile<1xi32> -> tile<8xi32>
    %1824 = divi %1821, %1823 signed : tile<8xi32>
    %1825 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1826 = broadcast %1825 : tile<1xi32> -> tile<8xi32>
    %1827 = remi %1824, %1826 signed : tile<8xi32>
    %1828 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1829 = broadcast %1828 : tile<1xi32> -> tile<8xi32>
    %1830 = cmpi equal %1827, %1829, signed : tile<8xi32> -> tile<8xi1>
    %1831 = reshape %1830 : tile<8xi1> -> tile<8x1x1xi1>
    %1832 = reshape %1817 : tile<64xi32> -> tile<8x2x4xi32>
    %1833 = extract %1832[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1834 = extract %1832[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1835 = cmpi greater_than %1833, %1834, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1836 = broadcast %1831 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1837 = xori %1835, %1836 : tile<8x1x4xi1>
    %1838 = select %1837, %1834, %1833 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1839 = select %1837, %1833, %1834 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1840 = cat %1838, %1839 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1841 = reshape %1840 : tile<8x2x4xi32> -> tile<64xi32>
    %1842 = iota : tile<16xi32>
    %1843 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1844 = broadcast %1843 : tile<1xi32> -> tile<16xi32>
    %1845 = muli %1842, %1844 : tile<16xi32>
    %1846 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1847 = broadcast %1846 : tile<1xi32> -> tile<16xi32>
    %1848 = divi %1845, %1847 signed : tile<16xi32>
    %1849 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1850 = broadcast %1849 : tile<1xi32> -> tile<16xi32>
    %1851 = remi %1848, %1850 signed : tile<16xi32>
    %1852 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1853 = broadcast %1852 : tile<1xi32> -> tile<16xi32>
    %1854 = cmpi equal %1851, %1853, signed : tile<16xi32> -> tile<16xi1>
    %1855 = reshape %1854 : tile<16xi1> -> tile<16x1x1xi1>
    %1856 = reshape %1841 : tile<64xi32> -> tile<16x2x2xi32>
    %1857 = extract %1856[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1858 = extract %1856[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1859 = cmpi greater_than %1857, %1858, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1860 = broadcast %1855 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1861 = xori %1859, %1860 : tile<16x1x2xi1>
    %1862 = select %1861, %1858, %1857 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1863 = select %1861, %1857, %1858 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1864 = cat %1862, %1863 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1865 = reshape %1864 : tile<16x2x2xi32> -> tile<64xi32>
    %1866 = iota : tile<32xi32>
    %1867 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1868 = broadcast %1867 : tile<1xi32> -> tile<32xi32>
    %1869 = muli %1866, %1868 : tile<32xi32>
    %1870 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1871 = broadcast %1870 : tile<1xi32> -> tile<32xi32>
    %1872 = divi %1869, %1871 signed : tile<32xi32>
    %1873 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1874 = broadcast %1873 : tile<1xi32> -> tile<32xi32>
    %1875 = remi %1872, %1874 signed : tile<32xi32>
    %1876 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1877 = broadcast %1876 : tile<1xi32> -> tile<32xi32>
    %1878 = cmpi equal %1875, %1877, signed : tile<32xi32> -> tile<32xi1>
    %1879 = reshape %1878 : tile<32xi1> -> tile<32x1x1xi1>
    %1880 = reshape %1865 : tile<64xi32> -> tile<32x2x1xi32>
    %1881 = extract %1880[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1882 = extract %1880[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1883 = cmpi greater_than %1881, %1882, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1884 = xori %1883, %1879 : tile<32x1x1xi1>
    %1885 = select %1884, %1882, %1881 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1886 = select %1884, %1881, %1882 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1887 = cat %1885, %1886 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1888 = reshape %1887 : tile<32x2x1xi32> -> tile<64xi32>
    %1889 = reshape %1888 : tile<64xi32> -> tile<1x2x32xi32>
    %1890 = extract %1889[%c_0, %c_0, %c_0] : tile<1x2x32xi32> -> tile<1x1x32xi32>
    %1891 = extract %1889[%c_0, %c_1, %c_0] : tile<1x2x32xi32> -> tile<1x1x32xi32>
    %1892 = cmpi greater_than %1890, %1891, signed : tile<1x1x32xi32> -> tile<1x1x32xi1>
    %1893 = select %1892, %1891, %1890 : tile<1x1x32xi1>, tile<1x1x32xi32>
    %1894 = select %1892, %1890, %1891 : tile<1x1x32xi1>, tile<1x1x32xi32>
    %1895 = cat %1893, %1894 dim = 1 : tile<1x1x32xi32>, tile<1x1x32xi32> -> tile<1x2x32xi32>
    %1896 = reshape %1895 : tile<1x2x32xi32> -> tile<64xi32>
    %1897 = reshape %1896 : tile<64xi32> -> tile<2x2x16xi32>
    %1898 = extract %1897[%c_0, %c_0, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1899 = extract %1897[%c_0, %c_1, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1900 = cmpi greater_than %1898, %1899, signed : tile<2x1x16xi32> -> tile<2x1x16xi1>
    %1901 = select %1900, %1899, %1898 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1902 = select %1900, %1898, %1899 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1903 = cat %1901, %1902 dim = 1 : tile<2x1x16xi32>, tile<2x1x16xi32> -> tile<2x2x16xi32>
    %1904 = reshape %1903 : tile<2x2x16xi32> -> tile<64xi32>
    %1905 = reshape %1904 : tile<64xi32> -> tile<4x2x8xi32>
    %1906 = extract %1905[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1907 = extract %1905[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1908 = cmpi greater_than %1906, %1907, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1909 = select %1908, %1907, %1906 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1910 = select %1908, %1906, %1907 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1911 = cat %1909, %1910 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1912 = reshape %1911 : tile<4x2x8xi32> -> tile<64xi32>
    %1913 = reshape %1912 : tile<64xi32> -> tile<8x2x4xi32>
    %1914 = extract %1913[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1915 = extract %1913[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1916 = cmpi greater_than %1914, %1915, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1917 = select %1916, %1915, %1914 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1918 = select %1916, %1914, %1915 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1919 = cat %1917, %1918 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1920 = reshape %1919 : tile<8x2x4xi32> -> tile<64xi32>
    %1921 = reshape %1920 : tile<64xi32> -> tile<16x2x2xi32>
    %1922 = extract %1921[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1923 = extract %1921[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1924 = cmpi greater_than %1922, %1923, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1925 = select %1924, %1923, %1922 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1926 = select %1924, %1922, %1923 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1927 = cat %1925, %1926 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1928 = reshape %1927 : tile<16x2x2xi32> -> tile<64xi32>
    %1929 = reshape %1928 : tile<64xi32> -> tile<32x2x1xi32>
    %1930 = extract %1929[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1931 = extract %1929[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1932 = cmpi greater_than %1930, %1931, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1933 = select %1932, %1931, %1930 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1934 = select %1932, %1930, %1931 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1935 = cat %1933, %1934 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %result_65 = reshape %1935 : tile<32x2x1xi32> -> tile<64xi32>
    %1936 = cmpf equal ordered %a, %a : tile<64xf32> -> tile<64xi1>
    %1937 = reshape %c_minus_inf : tile<f32> -> tile<1xf32>
    %1938 = broadcast %1937 : tile<1xf32> -> tile<64xf32>
    %1939 = select %1936, %a, %1938 : tile<64xi1>, tile<64xf32>
    %1940 = iota : tile<64xi32>
    %1941 = reduce %1939 dim=0 identities=[0xFF800000 : f32] : tile<64xf32> -> tile<f32>
        (%x_11: tile<f32>, %acc_10: tile<f32>) {
      %1942 = maxf %x_11, %acc_10 : tile<f32>
      yield %1942 : tile<f32>
    }
    %1943 = reshape %1941 : tile<f32> -> tile<1xf32>
    %1944 = broadcast %1943 : tile<1xf32> -> tile<64xf32>
    %1945 = cmpf equal ordered %1939, %1944 : tile<64xf32> -> tile<64xi1>
    %1946 = reshape %c_2147483647 : tile<i32> -> tile<1xi32>
    %1947 = broadcast %1946 : tile<1xi32> -> tile<64xi32>
    %1948 = select %1945, %1940, %1947 : tile<64xi1>, tile<64xi32>
    %1949 = reduce %1948 dim=0 identities=[2147483647 : i32] : tile<64xi32> -> tile<i32>
        (%x_12: tile<i32>, %acc_11: tile<i32>) {
      %1950 = mini %x_12, %acc_11 signed : tile<i32>
      yield %1950 : tile<i32>
    }
    %1951 = reshape %1949 : tile<i32> -> tile<1xi32>
    %result_66 = broadcast %1951 : tile<1xi32> -> tile<64xi32>
    %1952 = cmpf equal ordered %a, %a : tile<64xf32> -> tile<64xi1>
    %1953 = reshape %c_inf : tile<f32> -> tile<1xf32>
    %1954 = broadcast %1953 : tile<1xf32> -> tile<64xf32>
    %1955 = select %1952, %a, %1954 : tile<64xi1>, tile<64xf32>
    %1956 = iota : tile<64xi32>
    %1957 = reduce %1955 dim=0 identities=[0x7F800000 : f32] : tile<64xf32> -> tile<f32>
        (%x_13: tile<f32>, %acc_12: tile<f32>) {
      %1958 = minf %x_13, %acc_12 : tile<f32>
      yield %1958 : tile<f32>
    }
    %1959 = reshape %1957 : tile<f32> -> tile<1xf32>
    %1960 = broadcast %1959 : tile<1xf32> -> tile<64xf32>
    %1961 = cmpf equal ordered %1955, %1960 : tile<64xf32> -> tile<64xi1>
    %1962 = reshape %c_2147483647 : tile<i32> -> tile<1xi32>
    %1963 = broadcast %1962 : tile<1xi32> -> tile<64xi32>
    %1964 = select %1961, %1956, %1963 : tile<64xi1>, tile<64xi32>
    %1965 = reduce %1964 dim=0 identities=[2147483647 : i32] : tile<64xi32> -> tile<i32>
        (%x_14: tile<i32>, %acc_13: tile<i32>) {
      %1966 = mini %x_14, %acc_13 signed : tile<i32>
      yield %1966 : tile<i32>
    }
    %1967 = reshape %1965 : tile<i32> -> tile<1xi32>
    %result_67 = broadcast %1967 : tile<1xi32> -> tile<64xi32>
    %1968 = reduce %n dim=0 identities=[0 : i32] : tile<64xi32> -> tile<i32>
        (%x_15: tile<i32>, %acc_14: tile<i32>) {
      %1969 = xori %x_15, %acc_14 : tile<i32>
      yield %1969 : tile<i32>
    }
    %1970 = reshape %1968 : tile<i32> -> tile<1xi32>
    %result_68 = broadcast %1970 : tile<1xi32> -> tile<64xi32>
    %1971 = reduce %n dim=0 identities=[0 : i32] : tile<64xi32> -> tile<i32>
        (%x_16: tile<i32>, %acc_15: tile<i32>) {
      %1972 = addi %x_16, %acc_15 : tile<i32>
      yield %1972 : tile<i32>
    }
    %1973 = reshape %1971 : tile<i32> -> tile<1xi32>
    %result_69 = broadcast %1973 : tile<1xi32> -> tile<64xi32>
    %1974 = trunci %n : tile<64xi32> -> tile<64xi8>
    %result_70 = exti %1974 signed : tile<64xi8> -> tile<64xi32>
    %1975 = reshape %n : tile<64xi32> -> tile<64x1xi32>
    %1976 = iota : tile<64xi32>
    %1977 = reshape %1976 : tile<64xi32> -> tile<1x64xi32>
    %1978 = broadcast %1975 : tile<64x1xi32> -> tile<64x64xi32>
    %1979 = broadcast %1977 : tile<1x64xi32> -> tile<64x64xi32>
    %1980 = cmpi equal %1978, %1979, signed : tile<64x64xi32> -> tile<64x64xi1>
    %1981 = exti %1980 unsigned : tile<64x64xi1> -> tile<64x64xi32>
    %result_71 = reduce %1981 dim=0 identities=[0 : i32] : tile<64x64xi32> -> tile<64xi32>
        (%x_17: tile<i32>, %acc_16: tile<i32>) {
      %1982 = addi %x_17, %acc_16 : tile<i32>
      yield %1982 : tile<i32>
    }
    %1983 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1984 = broadcast %1983 : tile<1xi32> -> tile<64xi32>
    %1985 = addi %n, %1984 : tile<64xi32>
    %1986 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1987 = broadcast %1986 : tile<1xi32> -> tile<64xi32>
    %result_72 = divi %1985, %1987 signed : tile<64xi32>
    %1988 = trunci %n : tile<64xi32> -> tile<64xi8>
    %1989 = exti %1988 signed : tile<64xi8> -> tile<64xi32>
    %result_73 = scan %1989 dim=0 reverse=false identities=[0 : i32] : tile<64xi32> -> tile<64xi32>
        (%x_18: tile<i32>, %acc_17: tile<i32>) {
      %1990 = addi %x_18, %acc_17 : tile<i32>
      yield %1990 : tile<i32>
    }
    %1991 = offset %ints, %c_0 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1992 = reshape %1991 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1993 = broadcast %1992 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1994 = offset %1993, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_49 = store_ptr_tko weak %1994, %result_47 token = %wrote_48
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1995 = offset %ints, %c_64 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1996 = reshape %1995 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1997 = broadcast %1996 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1998 = offset %1997, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_50 = store_ptr_tko weak %1998, %result_48 token = %wrote_49
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1999 = offset %ints, %c_128 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2000 = reshape %1999 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2001 = broadcast %2000 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2002 = offset %2001, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_51 = store_ptr_tko weak %2002, %result_49 token = %wrote_50
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2003 = offset %ints, %c_192 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2004 = reshape %2003 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2005 = broadcast %2004 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2006 = offset %2005, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_52 = store_ptr_tko weak %2006, %result_50 token = %wrote_51
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2007 = offset %ints, %c_256 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2008 = reshape %2007 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2009 = broadcast %2008 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2010 = offset %2009, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_53 = store_ptr_tko weak %2010, %result_51 token = %wrote_52
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2011 = offset %ints, %c_320 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2012 = reshape %2011 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2013 = broadcast %2012 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2014 = offset %2013, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_54 = store_ptr_tko weak %2014, %result_52 token = %wrote_53
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2015 = offset %ints, %c_384 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2016 = reshape %2015 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2017 = broadcast %2016 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2018 = offset %2017, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_55 = store_ptr_tko weak %2018, %result_53 token = %wrote_54
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2019 = offset %ints, %c_448 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2020 = reshape %2019 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2021 = broadcast %2020 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2022 = offset %2021, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_56 = store_ptr_tko weak %2022, %result_54 token = %wrote_55
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2023 = offset %ints, %c_512 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2024 = reshape %2023 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2025 = broadcast %2024 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2026 = offset %2025, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_57 = store_ptr_tko weak %2026, %result_55 token = %wrote_56
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2027 = offset %ints, %c_576 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2028 = reshape %2027 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2029 = broadcast %2028 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2030 = offset %2029, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_58 = store_ptr_tko weak %2030, %result_56 token = %wrote_57
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2031 = offset %ints, %c_640 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2032 = reshape %2031 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2033 = broadcast %2032 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2034 = offset %2033, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_59 = store_ptr_tko weak %2034, %result_57 token = %wrote_58
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2035 = offset %ints, %c_704 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2036 = reshape %2035 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2037 = broadcast %2036 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2038 = offset %2037, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_60 = store_ptr_tko weak %2038, %result_58 token = %wrote_59
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2039 = offset %ints, %c_768 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2040 = reshape %2039 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2041 = broadcast %2040 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2042 = offset %2041, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_61 = store_ptr_tko weak %2042, %result_59 token = %wrote_60
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2043 = offset %ints, %c_832 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2044 = reshape %2043 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2045 = broadcast %2044 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2046 = offset %2045, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_62 = store_ptr_tko weak %2046, %result_60 token = %wrote_61
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2047 = offset %ints, %c_896 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2048 = reshape %2047 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2049 = broadcast %2048 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2050 = offset %2049, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_63 = store_ptr_tko weak %2050, %result_61 token = %wrote_62
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2051 = offset %ints, %c_960 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2052 = reshape %2051 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2053 = broadcast %2052 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2054 = offset %2053, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_64 = store_ptr_tko weak %2054, %result_62 token = %wrote_63
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2055 = offset %ints, %c_1024 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2056 = reshape %2055 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2057 = broadcast %2056 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2058 = offset %2057, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_65 = store_ptr_tko weak %2058, %result_63 token = %wrote_64
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2059 = offset %ints, %c_1088 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2060 = reshape %2059 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2061 = broadcast %2060 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2062 = offset %2061, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_66 = store_ptr_tko weak %2062, %result_64 token = %wrote_65
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2063 = offset %ints, %c_1152 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2064 = reshape %2063 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2065 = broadcast %2064 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2066 = offset %2065, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_67 = store_ptr_tko weak %2066, %result_65 token = %wrote_66
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2067 = offset %ints, %c_1216 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2068 = reshape %2067 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2069 = broadcast %2068 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2070 = offset %2069, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_68 = store_ptr_tko weak %2070, %result_66 token = %wrote_67
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2071 = offset %ints, %c_1280 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2072 = reshape %2071 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2073 = broadcast %2072 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2074 = offset %2073, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_69 = store_ptr_tko weak %2074, %result_67 token = %wrote_68
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2075 = offset %ints, %c_1344 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2076 = reshape %2075 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2077 = broadcast %2076 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2078 = offset %2077, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_70 = store_ptr_tko weak %2078, %result_68 token = %wrote_69
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2079 = offset %ints, %c_1408 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2080 = reshape %2079 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2081 = broadcast %2080 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2082 = offset %2081, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_71 = store_ptr_tko weak %2082, %result_69 token = %wrote_70
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2083 = offset %ints, %c_1472 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2084 = reshape %2083 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2085 = broadcast %2084 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2086 = offset %2085, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_72 = store_ptr_tko weak %2086, %result_70 token = %wrote_71
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2087 = offset %ints, %c_1536 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2088 = reshape %2087 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2089 = broadcast %2088 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2090 = offset %2089, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_73 = store_ptr_tko weak %2090, %result_71 token = %wrote_72
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2091 = offset %ints, %c_1600 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2092 = reshape %2091 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2093 = broadcast %2092 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2094 = offset %2093, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_74 = store_ptr_tko weak %2094, %result_72 token = %wrote_73
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2095 = offset %ints, %c_1664 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2096 = reshape %2095 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2097 = broadcast %2096 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2098 = offset %2097, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_75 = store_ptr_tko weak %2098, %result_73 token = %wrote_74
        : tile<64xptr<i32>>, tile<64xi32> -> token
    return
  }
}
