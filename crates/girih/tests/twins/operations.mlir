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
    %c_0_1 = constant <f32: 0.0> : tile<8x8xf32>
    %c_0_2 = constant <i32: 0> : tile<i32>
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
    %c_64 = constant <i32: 64> : tile<i32>
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
    %c_inf = constant <f32: 0x7F800000> : tile<f32>
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
    %502 = reshape %a : tile<64xf32> -> tile<32x2x1xf32>
    %503 = extract %502[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %504 = extract %502[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %505 = cat %504, %503 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %506 = reshape %505 : tile<32x2x1xf32> -> tile<64xf32>
    %507 = reshape %506 : tile<64xf32> -> tile<16x2x2xf32>
    %508 = extract %507[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %509 = extract %507[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %510 = cat %509, %508 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %511 = reshape %510 : tile<16x2x2xf32> -> tile<64xf32>
    %512 = reshape %511 : tile<64xf32> -> tile<8x2x4xf32>
    %513 = extract %512[%c_0, %c_0, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %514 = extract %512[%c_0, %c_1, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %515 = cat %514, %513 dim = 1 : tile<8x1x4xf32>, tile<8x1x4xf32> -> tile<8x2x4xf32>
    %516 = reshape %515 : tile<8x2x4xf32> -> tile<64xf32>
    %517 = reshape %516 : tile<64xf32> -> tile<4x2x8xf32>
    %518 = extract %517[%c_0, %c_0, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %519 = extract %517[%c_0, %c_1, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %520 = cat %519, %518 dim = 1 : tile<4x1x8xf32>, tile<4x1x8xf32> -> tile<4x2x8xf32>
    %521 = reshape %520 : tile<4x2x8xf32> -> tile<64xf32>
    %522 = reshape %521 : tile<64xf32> -> tile<2x2x16xf32>
    %523 = extract %522[%c_0, %c_0, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %524 = extract %522[%c_0, %c_1, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %525 = cat %524, %523 dim = 1 : tile<2x1x16xf32>, tile<2x1x16xf32> -> tile<2x2x16xf32>
    %526 = reshape %525 : tile<2x2x16xf32> -> tile<64xf32>
    %527 = reshape %526 : tile<64xf32> -> tile<1x2x32xf32>
    %528 = extract %527[%c_0, %c_0, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %529 = extract %527[%c_0, %c_1, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %530 = cat %529, %528 dim = 1 : tile<1x1x32xf32>, tile<1x1x32xf32> -> tile<1x2x32xf32>
    %result_30 = reshape %530 : tile<1x2x32xf32> -> tile<64xf32>
    %result_31 = scan %a dim=0 reverse=false identities=[0.0 : f32] : tile<64xf32> -> tile<64xf32>
        (%x_3: tile<f32>, %acc_2: tile<f32>) {
      %531 = addf %x_3, %acc_2 : tile<f32>
      yield %531 : tile<f32>
    }
    %result_32 = scan %a dim=0 reverse=false identities=[1.0 : f32] : tile<64xf32> -> tile<64xf32>
        (%x_4: tile<f32>, %acc_3: tile<f32>) {
      %532 = mulf %x_4, %acc_3 : tile<f32>
      yield %532 : tile<f32>
    }
    %result_33 = itof %n signed : tile<64xi32> -> tile<64xf32>
    %533 = ftof %a : tile<64xf32> -> tile<64xf16>
    %result_34 = ftof %533 : tile<64xf16> -> tile<64xf32>
    %534 = ftof %a : tile<64xf32> -> tile<64xbf16>
    %result_35 = ftof %534 : tile<64xbf16> -> tile<64xf32>
    %535 = permute %square [1, 0] : tile<8x8xf32> -> tile<8x8xf32>
    %result_36 = reshape %535 : tile<8x8xf32> -> tile<64xf32>
    %536 = reshape %b : tile<64xf32> -> tile<8x8xf32>
    %537 = mmaf %square, %536, %c_0_1 : tile<8x8xf32>, tile<8x8xf32>, tile<8x8xf32>
    %result_37 = reshape %537 : tile<8x8xf32> -> tile<64xf32>
    %538 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %539 = broadcast %538 : tile<1xi32> -> tile<64xi32>
    %540 = remi %n, %539 signed : tile<64xi32>
    %541 = reshape %540 : tile<64xi32> -> tile<8x8xi32>
    %542 = reshape %square : tile<8x8xf32> -> tile<8x1x8xf32>
    %543 = reshape %541 : tile<8x8xi32> -> tile<8x8x1xi32>
    %544 = iota : tile<8xi32>
    %545 = reshape %544 : tile<8xi32> -> tile<1x1x8xi32>
    %546 = broadcast %543 : tile<8x8x1xi32> -> tile<8x8x8xi32>
    %547 = broadcast %545 : tile<1x1x8xi32> -> tile<8x8x8xi32>
    %548 = cmpi equal %546, %547, signed : tile<8x8x8xi32> -> tile<8x8x8xi1>
    %549 = reshape %c_0_0 : tile<f32> -> tile<1x1x1xf32>
    %550 = broadcast %549 : tile<1x1x1xf32> -> tile<8x1x8xf32>
    %551 = broadcast %542 : tile<8x1x8xf32> -> tile<8x8x8xf32>
    %552 = broadcast %550 : tile<8x1x8xf32> -> tile<8x8x8xf32>
    %553 = select %548, %551, %552 : tile<8x8x8xi1>, tile<8x8x8xf32>
    %554 = reduce %553 dim=2 identities=[0.0 : f32] : tile<8x8x8xf32> -> tile<8x8xf32>
        (%x_5: tile<f32>, %acc_4: tile<f32>) {
      %555 = addf %x_5, %acc_4 : tile<f32>
      yield %555 : tile<f32>
    }
    %result_38 = reshape %554 : tile<8x8xf32> -> tile<64xf32>
    %556 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %557 = broadcast %556 : tile<1xi32> -> tile<64xi32>
    %558 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %559 = broadcast %558 : tile<1xi32> -> tile<64xi32>
    %560 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %561 = broadcast %560 : tile<1xi32> -> tile<64xi32>
    %562 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %563 = broadcast %562 : tile<1xi32> -> tile<64xi32>
    %564 = mulhii %559, %563 : tile<64xi32>
    %565 = xori %564, %557 : tile<64xi32>
    %566 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %567 = broadcast %566 : tile<1xi32> -> tile<64xi32>
    %568 = xori %565, %567 : tile<64xi32>
    %569 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %570 = broadcast %569 : tile<1xi32> -> tile<64xi32>
    %571 = muli %559, %570 : tile<64xi32>
    %572 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %573 = broadcast %572 : tile<1xi32> -> tile<64xi32>
    %574 = mulhii %i, %573 : tile<64xi32>
    %575 = xori %574, %561 : tile<64xi32>
    %576 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %577 = broadcast %576 : tile<1xi32> -> tile<64xi32>
    %578 = xori %575, %577 : tile<64xi32>
    %579 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %580 = broadcast %579 : tile<1xi32> -> tile<64xi32>
    %581 = muli %i, %580 : tile<64xi32>
    %582 = addi %c_7, %c_2654435769 : tile<i32>
    %583 = addi %c_0_2, %c_3144134277 : tile<i32>
    %584 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %585 = broadcast %584 : tile<1xi32> -> tile<64xi32>
    %586 = mulhii %578, %585 : tile<64xi32>
    %587 = xori %586, %571 : tile<64xi32>
    %588 = reshape %582 : tile<i32> -> tile<1xi32>
    %589 = broadcast %588 : tile<1xi32> -> tile<64xi32>
    %590 = xori %587, %589 : tile<64xi32>
    %591 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %592 = broadcast %591 : tile<1xi32> -> tile<64xi32>
    %593 = muli %578, %592 : tile<64xi32>
    %594 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %595 = broadcast %594 : tile<1xi32> -> tile<64xi32>
    %596 = mulhii %568, %595 : tile<64xi32>
    %597 = xori %596, %581 : tile<64xi32>
    %598 = reshape %583 : tile<i32> -> tile<1xi32>
    %599 = broadcast %598 : tile<1xi32> -> tile<64xi32>
    %600 = xori %597, %599 : tile<64xi32>
    %601 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %602 = broadcast %601 : tile<1xi32> -> tile<64xi32>
    %603 = muli %568, %602 : tile<64xi32>
    %604 = addi %582, %c_2654435769 : tile<i32>
    %605 = addi %583, %c_3144134277 : tile<i32>
    %606 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %607 = broadcast %606 : tile<1xi32> -> tile<64xi32>
    %608 = mulhii %600, %607 : tile<64xi32>
    %609 = xori %608, %593 : tile<64xi32>
    %610 = reshape %604 : tile<i32> -> tile<1xi32>
    %611 = broadcast %610 : tile<1xi32> -> tile<64xi32>
    %612 = xori %609, %611 : tile<64xi32>
    %613 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %614 = broadcast %613 : tile<1xi32> -> tile<64xi32>
    %615 = muli %600, %614 : tile<64xi32>
    %616 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %617 = broadcast %616 : tile<1xi32> -> tile<64xi32>
    %618 = mulhii %590, %617 : tile<64xi32>
    %619 = xori %618, %603 : tile<64xi32>
    %620 = reshape %605 : tile<i32> -> tile<1xi32>
    %621 = broadcast %620 : tile<1xi32> -> tile<64xi32>
    %622 = xori %619, %621 : tile<64xi32>
    %623 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %624 = broadcast %623 : tile<1xi32> -> tile<64xi32>
    %625 = muli %590, %624 : tile<64xi32>
    %626 = addi %604, %c_2654435769 : tile<i32>
    %627 = addi %605, %c_3144134277 : tile<i32>
    %628 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %629 = broadcast %628 : tile<1xi32> -> tile<64xi32>
    %630 = mulhii %622, %629 : tile<64xi32>
    %631 = xori %630, %615 : tile<64xi32>
    %632 = reshape %626 : tile<i32> -> tile<1xi32>
    %633 = broadcast %632 : tile<1xi32> -> tile<64xi32>
    %634 = xori %631, %633 : tile<64xi32>
    %635 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %636 = broadcast %635 : tile<1xi32> -> tile<64xi32>
    %637 = muli %622, %636 : tile<64xi32>
    %638 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %639 = broadcast %638 : tile<1xi32> -> tile<64xi32>
    %640 = mulhii %612, %639 : tile<64xi32>
    %641 = xori %640, %625 : tile<64xi32>
    %642 = reshape %627 : tile<i32> -> tile<1xi32>
    %643 = broadcast %642 : tile<1xi32> -> tile<64xi32>
    %644 = xori %641, %643 : tile<64xi32>
    %645 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %646 = broadcast %645 : tile<1xi32> -> tile<64xi32>
    %647 = muli %612, %646 : tile<64xi32>
    %648 = addi %626, %c_2654435769 : tile<i32>
    %649 = addi %627, %c_3144134277 : tile<i32>
    %650 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %651 = broadcast %650 : tile<1xi32> -> tile<64xi32>
    %652 = mulhii %644, %651 : tile<64xi32>
    %653 = xori %652, %637 : tile<64xi32>
    %654 = reshape %648 : tile<i32> -> tile<1xi32>
    %655 = broadcast %654 : tile<1xi32> -> tile<64xi32>
    %656 = xori %653, %655 : tile<64xi32>
    %657 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %658 = broadcast %657 : tile<1xi32> -> tile<64xi32>
    %659 = muli %644, %658 : tile<64xi32>
    %660 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %661 = broadcast %660 : tile<1xi32> -> tile<64xi32>
    %662 = mulhii %634, %661 : tile<64xi32>
    %663 = xori %662, %647 : tile<64xi32>
    %664 = reshape %649 : tile<i32> -> tile<1xi32>
    %665 = broadcast %664 : tile<1xi32> -> tile<64xi32>
    %666 = xori %663, %665 : tile<64xi32>
    %667 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %668 = broadcast %667 : tile<1xi32> -> tile<64xi32>
    %669 = muli %634, %668 : tile<64xi32>
    %670 = addi %648, %c_2654435769 : tile<i32>
    %671 = addi %649, %c_3144134277 : tile<i32>
    %672 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %673 = broadcast %672 : tile<1xi32> -> tile<64xi32>
    %674 = mulhii %666, %673 : tile<64xi32>
    %675 = xori %674, %659 : tile<64xi32>
    %676 = reshape %670 : tile<i32> -> tile<1xi32>
    %677 = broadcast %676 : tile<1xi32> -> tile<64xi32>
    %678 = xori %675, %677 : tile<64xi32>
    %679 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %680 = broadcast %679 : tile<1xi32> -> tile<64xi32>
    %681 = muli %666, %680 : tile<64xi32>
    %682 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %683 = broadcast %682 : tile<1xi32> -> tile<64xi32>
    %684 = mulhii %656, %683 : tile<64xi32>
    %685 = xori %684, %669 : tile<64xi32>
    %686 = reshape %671 : tile<i32> -> tile<1xi32>
    %687 = broadcast %686 : tile<1xi32> -> tile<64xi32>
    %688 = xori %685, %687 : tile<64xi32>
    %689 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %690 = broadcast %689 : tile<1xi32> -> tile<64xi32>
    %691 = muli %656, %690 : tile<64xi32>
    %692 = addi %670, %c_2654435769 : tile<i32>
    %693 = addi %671, %c_3144134277 : tile<i32>
    %694 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %695 = broadcast %694 : tile<1xi32> -> tile<64xi32>
    %696 = mulhii %688, %695 : tile<64xi32>
    %697 = xori %696, %681 : tile<64xi32>
    %698 = reshape %692 : tile<i32> -> tile<1xi32>
    %699 = broadcast %698 : tile<1xi32> -> tile<64xi32>
    %700 = xori %697, %699 : tile<64xi32>
    %701 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %702 = broadcast %701 : tile<1xi32> -> tile<64xi32>
    %703 = muli %688, %702 : tile<64xi32>
    %704 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %705 = broadcast %704 : tile<1xi32> -> tile<64xi32>
    %706 = mulhii %678, %705 : tile<64xi32>
    %707 = xori %706, %691 : tile<64xi32>
    %708 = reshape %693 : tile<i32> -> tile<1xi32>
    %709 = broadcast %708 : tile<1xi32> -> tile<64xi32>
    %710 = xori %707, %709 : tile<64xi32>
    %711 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %712 = broadcast %711 : tile<1xi32> -> tile<64xi32>
    %713 = muli %678, %712 : tile<64xi32>
    %714 = addi %692, %c_2654435769 : tile<i32>
    %715 = addi %693, %c_3144134277 : tile<i32>
    %716 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %717 = broadcast %716 : tile<1xi32> -> tile<64xi32>
    %718 = mulhii %710, %717 : tile<64xi32>
    %719 = xori %718, %703 : tile<64xi32>
    %720 = reshape %714 : tile<i32> -> tile<1xi32>
    %721 = broadcast %720 : tile<1xi32> -> tile<64xi32>
    %722 = xori %719, %721 : tile<64xi32>
    %723 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %724 = broadcast %723 : tile<1xi32> -> tile<64xi32>
    %725 = mulhii %700, %724 : tile<64xi32>
    %726 = xori %725, %713 : tile<64xi32>
    %727 = reshape %715 : tile<i32> -> tile<1xi32>
    %728 = broadcast %727 : tile<1xi32> -> tile<64xi32>
    %729 = xori %726, %728 : tile<64xi32>
    %730 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %731 = broadcast %730 : tile<1xi32> -> tile<64xi32>
    %732 = muli %700, %731 : tile<64xi32>
    %733 = addi %714, %c_2654435769 : tile<i32>
    %734 = addi %715, %c_3144134277 : tile<i32>
    %735 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %736 = broadcast %735 : tile<1xi32> -> tile<64xi32>
    %737 = muli %729, %736 : tile<64xi32>
    %738 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %739 = broadcast %738 : tile<1xi32> -> tile<64xi32>
    %740 = mulhii %722, %739 : tile<64xi32>
    %741 = xori %740, %732 : tile<64xi32>
    %742 = reshape %734 : tile<i32> -> tile<1xi32>
    %743 = broadcast %742 : tile<1xi32> -> tile<64xi32>
    %744 = xori %741, %743 : tile<64xi32>
    %745 = addi %733, %c_2654435769 : tile<i32>
    %746 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %747 = broadcast %746 : tile<1xi32> -> tile<64xi32>
    %748 = mulhii %744, %747 : tile<64xi32>
    %749 = xori %748, %737 : tile<64xi32>
    %750 = reshape %745 : tile<i32> -> tile<1xi32>
    %751 = broadcast %750 : tile<1xi32> -> tile<64xi32>
    %752 = xori %749, %751 : tile<64xi32>
    %753 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %754 = broadcast %753 : tile<1xi32> -> tile<64xi32>
    %755 = cmpi less_than %752, %754, signed : tile<64xi32> -> tile<64xi1>
    %756 = negi %752 : tile<64xi32>
    %757 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %758 = broadcast %757 : tile<1xi32> -> tile<64xi32>
    %759 = subi %756, %758 : tile<64xi32>
    %760 = select %755, %759, %752 : tile<64xi1>, tile<64xi32>
    %761 = itof %760 signed : tile<64xi32> -> tile<64xf32>
    %762 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %763 = broadcast %762 : tile<1xf32> -> tile<64xf32>
    %result_39 = mulf %761, %763 : tile<64xf32>
    %764 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %765 = broadcast %764 : tile<1xi32> -> tile<64xi32>
    %766 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %767 = broadcast %766 : tile<1xi32> -> tile<64xi32>
    %768 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %769 = broadcast %768 : tile<1xi32> -> tile<64xi32>
    %770 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %771 = broadcast %770 : tile<1xi32> -> tile<64xi32>
    %772 = mulhii %767, %771 : tile<64xi32>
    %773 = xori %772, %765 : tile<64xi32>
    %774 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %775 = broadcast %774 : tile<1xi32> -> tile<64xi32>
    %776 = xori %773, %775 : tile<64xi32>
    %777 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %778 = broadcast %777 : tile<1xi32> -> tile<64xi32>
    %779 = muli %767, %778 : tile<64xi32>
    %780 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %781 = broadcast %780 : tile<1xi32> -> tile<64xi32>
    %782 = mulhii %i, %781 : tile<64xi32>
    %783 = xori %782, %769 : tile<64xi32>
    %784 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %785 = broadcast %784 : tile<1xi32> -> tile<64xi32>
    %786 = xori %783, %785 : tile<64xi32>
    %787 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %788 = broadcast %787 : tile<1xi32> -> tile<64xi32>
    %789 = muli %i, %788 : tile<64xi32>
    %790 = addi %c_7, %c_2654435769 : tile<i32>
    %791 = addi %c_0_2, %c_3144134277 : tile<i32>
    %792 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %793 = broadcast %792 : tile<1xi32> -> tile<64xi32>
    %794 = mulhii %786, %793 : tile<64xi32>
    %795 = xori %794, %779 : tile<64xi32>
    %796 = reshape %790 : tile<i32> -> tile<1xi32>
    %797 = broadcast %796 : tile<1xi32> -> tile<64xi32>
    %798 = xori %795, %797 : tile<64xi32>
    %799 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %800 = broadcast %799 : tile<1xi32> -> tile<64xi32>
    %801 = muli %786, %800 : tile<64xi32>
    %802 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %803 = broadcast %802 : tile<1xi32> -> tile<64xi32>
    %804 = mulhii %776, %803 : tile<64xi32>
    %805 = xori %804, %789 : tile<64xi32>
    %806 = reshape %791 : tile<i32> -> tile<1xi32>
    %807 = broadcast %806 : tile<1xi32> -> tile<64xi32>
    %808 = xori %805, %807 : tile<64xi32>
    %809 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %810 = broadcast %809 : tile<1xi32> -> tile<64xi32>
    %811 = muli %776, %810 : tile<64xi32>
    %812 = addi %790, %c_2654435769 : tile<i32>
    %813 = addi %791, %c_3144134277 : tile<i32>
    %814 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %815 = broadcast %814 : tile<1xi32> -> tile<64xi32>
    %816 = mulhii %808, %815 : tile<64xi32>
    %817 = xori %816, %801 : tile<64xi32>
    %818 = reshape %812 : tile<i32> -> tile<1xi32>
    %819 = broadcast %818 : tile<1xi32> -> tile<64xi32>
    %820 = xori %817, %819 : tile<64xi32>
    %821 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %822 = broadcast %821 : tile<1xi32> -> tile<64xi32>
    %823 = muli %808, %822 : tile<64xi32>
    %824 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %825 = broadcast %824 : tile<1xi32> -> tile<64xi32>
    %826 = mulhii %798, %825 : tile<64xi32>
    %827 = xori %826, %811 : tile<64xi32>
    %828 = reshape %813 : tile<i32> -> tile<1xi32>
    %829 = broadcast %828 : tile<1xi32> -> tile<64xi32>
    %830 = xori %827, %829 : tile<64xi32>
    %831 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %832 = broadcast %831 : tile<1xi32> -> tile<64xi32>
    %833 = muli %798, %832 : tile<64xi32>
    %834 = addi %812, %c_2654435769 : tile<i32>
    %835 = addi %813, %c_3144134277 : tile<i32>
    %836 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %837 = broadcast %836 : tile<1xi32> -> tile<64xi32>
    %838 = mulhii %830, %837 : tile<64xi32>
    %839 = xori %838, %823 : tile<64xi32>
    %840 = reshape %834 : tile<i32> -> tile<1xi32>
    %841 = broadcast %840 : tile<1xi32> -> tile<64xi32>
    %842 = xori %839, %841 : tile<64xi32>
    %843 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %844 = broadcast %843 : tile<1xi32> -> tile<64xi32>
    %845 = muli %830, %844 : tile<64xi32>
    %846 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %847 = broadcast %846 : tile<1xi32> -> tile<64xi32>
    %848 = mulhii %820, %847 : tile<64xi32>
    %849 = xori %848, %833 : tile<64xi32>
    %850 = reshape %835 : tile<i32> -> tile<1xi32>
    %851 = broadcast %850 : tile<1xi32> -> tile<64xi32>
    %852 = xori %849, %851 : tile<64xi32>
    %853 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %854 = broadcast %853 : tile<1xi32> -> tile<64xi32>
    %855 = muli %820, %854 : tile<64xi32>
    %856 = addi %834, %c_2654435769 : tile<i32>
    %857 = addi %835, %c_3144134277 : tile<i32>
    %858 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %859 = broadcast %858 : tile<1xi32> -> tile<64xi32>
    %860 = mulhii %852, %859 : tile<64xi32>
    %861 = xori %860, %845 : tile<64xi32>
    %862 = reshape %856 : tile<i32> -> tile<1xi32>
    %863 = broadcast %862 : tile<1xi32> -> tile<64xi32>
    %864 = xori %861, %863 : tile<64xi32>
    %865 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %866 = broadcast %865 : tile<1xi32> -> tile<64xi32>
    %867 = muli %852, %866 : tile<64xi32>
    %868 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %869 = broadcast %868 : tile<1xi32> -> tile<64xi32>
    %870 = mulhii %842, %869 : tile<64xi32>
    %871 = xori %870, %855 : tile<64xi32>
    %872 = reshape %857 : tile<i32> -> tile<1xi32>
    %873 = broadcast %872 : tile<1xi32> -> tile<64xi32>
    %874 = xori %871, %873 : tile<64xi32>
    %875 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %876 = broadcast %875 : tile<1xi32> -> tile<64xi32>
    %877 = muli %842, %876 : tile<64xi32>
    %878 = addi %856, %c_2654435769 : tile<i32>
    %879 = addi %857, %c_3144134277 : tile<i32>
    %880 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %881 = broadcast %880 : tile<1xi32> -> tile<64xi32>
    %882 = mulhii %874, %881 : tile<64xi32>
    %883 = xori %882, %867 : tile<64xi32>
    %884 = reshape %878 : tile<i32> -> tile<1xi32>
    %885 = broadcast %884 : tile<1xi32> -> tile<64xi32>
    %886 = xori %883, %885 : tile<64xi32>
    %887 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %888 = broadcast %887 : tile<1xi32> -> tile<64xi32>
    %889 = muli %874, %888 : tile<64xi32>
    %890 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %891 = broadcast %890 : tile<1xi32> -> tile<64xi32>
    %892 = mulhii %864, %891 : tile<64xi32>
    %893 = xori %892, %877 : tile<64xi32>
    %894 = reshape %879 : tile<i32> -> tile<1xi32>
    %895 = broadcast %894 : tile<1xi32> -> tile<64xi32>
    %896 = xori %893, %895 : tile<64xi32>
    %897 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %898 = broadcast %897 : tile<1xi32> -> tile<64xi32>
    %899 = muli %864, %898 : tile<64xi32>
    %900 = addi %878, %c_2654435769 : tile<i32>
    %901 = addi %879, %c_3144134277 : tile<i32>
    %902 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %903 = broadcast %902 : tile<1xi32> -> tile<64xi32>
    %904 = mulhii %896, %903 : tile<64xi32>
    %905 = xori %904, %889 : tile<64xi32>
    %906 = reshape %900 : tile<i32> -> tile<1xi32>
    %907 = broadcast %906 : tile<1xi32> -> tile<64xi32>
    %908 = xori %905, %907 : tile<64xi32>
    %909 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %910 = broadcast %909 : tile<1xi32> -> tile<64xi32>
    %911 = muli %896, %910 : tile<64xi32>
    %912 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %913 = broadcast %912 : tile<1xi32> -> tile<64xi32>
    %914 = mulhii %886, %913 : tile<64xi32>
    %915 = xori %914, %899 : tile<64xi32>
    %916 = reshape %901 : tile<i32> -> tile<1xi32>
    %917 = broadcast %916 : tile<1xi32> -> tile<64xi32>
    %918 = xori %915, %917 : tile<64xi32>
    %919 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %920 = broadcast %919 : tile<1xi32> -> tile<64xi32>
    %921 = muli %886, %920 : tile<64xi32>
    %922 = addi %900, %c_2654435769 : tile<i32>
    %923 = addi %901, %c_3144134277 : tile<i32>
    %924 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %925 = broadcast %924 : tile<1xi32> -> tile<64xi32>
    %926 = mulhii %918, %925 : tile<64xi32>
    %927 = xori %926, %911 : tile<64xi32>
    %928 = reshape %922 : tile<i32> -> tile<1xi32>
    %929 = broadcast %928 : tile<1xi32> -> tile<64xi32>
    %930 = xori %927, %929 : tile<64xi32>
    %931 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %932 = broadcast %931 : tile<1xi32> -> tile<64xi32>
    %933 = mulhii %908, %932 : tile<64xi32>
    %934 = xori %933, %921 : tile<64xi32>
    %935 = reshape %923 : tile<i32> -> tile<1xi32>
    %936 = broadcast %935 : tile<1xi32> -> tile<64xi32>
    %937 = xori %934, %936 : tile<64xi32>
    %938 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %939 = broadcast %938 : tile<1xi32> -> tile<64xi32>
    %940 = muli %908, %939 : tile<64xi32>
    %941 = addi %922, %c_2654435769 : tile<i32>
    %942 = addi %923, %c_3144134277 : tile<i32>
    %943 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %944 = broadcast %943 : tile<1xi32> -> tile<64xi32>
    %945 = muli %937, %944 : tile<64xi32>
    %946 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %947 = broadcast %946 : tile<1xi32> -> tile<64xi32>
    %948 = mulhii %930, %947 : tile<64xi32>
    %949 = xori %948, %940 : tile<64xi32>
    %950 = reshape %942 : tile<i32> -> tile<1xi32>
    %951 = broadcast %950 : tile<1xi32> -> tile<64xi32>
    %952 = xori %949, %951 : tile<64xi32>
    %953 = addi %941, %c_2654435769 : tile<i32>
    %954 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %955 = broadcast %954 : tile<1xi32> -> tile<64xi32>
    %956 = mulhii %952, %955 : tile<64xi32>
    %957 = xori %956, %945 : tile<64xi32>
    %958 = reshape %953 : tile<i32> -> tile<1xi32>
    %959 = broadcast %958 : tile<1xi32> -> tile<64xi32>
    %960 = xori %957, %959 : tile<64xi32>
    %961 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %962 = broadcast %961 : tile<1xi32> -> tile<64xi32>
    %963 = muli %952, %962 : tile<64xi32>
    %964 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %965 = broadcast %964 : tile<1xi32> -> tile<64xi32>
    %966 = cmpi less_than %960, %965, signed : tile<64xi32> -> tile<64xi1>
    %967 = negi %960 : tile<64xi32>
    %968 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %969 = broadcast %968 : tile<1xi32> -> tile<64xi32>
    %970 = subi %967, %969 : tile<64xi32>
    %971 = select %966, %970, %960 : tile<64xi1>, tile<64xi32>
    %972 = itof %971 signed : tile<64xi32> -> tile<64xf32>
    %973 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %974 = broadcast %973 : tile<1xf32> -> tile<64xf32>
    %975 = mulf %972, %974 : tile<64xf32>
    %976 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %977 = broadcast %976 : tile<1xi32> -> tile<64xi32>
    %978 = cmpi less_than %963, %977, signed : tile<64xi32> -> tile<64xi1>
    %979 = negi %963 : tile<64xi32>
    %980 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %981 = broadcast %980 : tile<1xi32> -> tile<64xi32>
    %982 = subi %979, %981 : tile<64xi32>
    %983 = select %978, %982, %963 : tile<64xi1>, tile<64xi32>
    %984 = itof %983 signed : tile<64xi32> -> tile<64xf32>
    %985 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %986 = broadcast %985 : tile<1xf32> -> tile<64xf32>
    %987 = mulf %984, %986 : tile<64xf32>
    %988 = reshape %c_1eminus_07 : tile<f32> -> tile<1xf32>
    %989 = broadcast %988 : tile<1xf32> -> tile<64xf32>
    %990 = maxf %975, %989 : tile<64xf32>
    %991 = log %990 : tile<64xf32>
    %992 = reshape %c_minus_2_0 : tile<f32> -> tile<1xf32>
    %993 = broadcast %992 : tile<1xf32> -> tile<64xf32>
    %994 = mulf %993, %991 : tile<64xf32>
    %995 = sqrt %994 : tile<64xf32>
    %996 = reshape %c_6_283185307179586 : tile<f32> -> tile<1xf32>
    %997 = broadcast %996 : tile<1xf32> -> tile<64xf32>
    %998 = mulf %997, %987 : tile<64xf32>
    %999 = cos %998 : tile<64xf32>
    %result_40 = mulf %995, %999 : tile<64xf32>
    %1000 = reshape %a : tile<64xf32> -> tile<32x2xf32>
    %1001 = reduce %1000 dim=1 identities=[0.0 : f32] : tile<32x2xf32> -> tile<32xf32>
        (%x_6: tile<f32>, %acc_5: tile<f32>) {
      %1002 = addf %x_6, %acc_5 : tile<f32>
      yield %1002 : tile<f32>
    }
    %1003 = reshape %b : tile<64xf32> -> tile<32x2xf32>
    %1004 = reduce %1003 dim=1 identities=[0xFF800000 : f32] : tile<32x2xf32> -> tile<32xf32>
        (%x_7: tile<f32>, %acc_6: tile<f32>) {
      %1005 = maxf %x_7, %acc_6 : tile<f32>
      yield %1005 : tile<f32>
    }
    %1006 = reshape %1001 : tile<32xf32> -> tile<32x1xf32>
    %1007 = reshape %1004 : tile<32xf32> -> tile<32x1xf32>
    %1008 = cat %1006, %1007 dim = 1 : tile<32x1xf32>, tile<32x1xf32> -> tile<32x2xf32>
    %result_41 = reshape %1008 : tile<32x2xf32> -> tile<64xf32>
    %1009 = reduce %a dim=0 identities=[0.0 : f32] : tile<64xf32> -> tile<f32>
        (%x_8: tile<f32>, %acc_7: tile<f32>) {
      %1010 = addf %x_8, %acc_7 : tile<f32>
      yield %1010 : tile<f32>
    }
    %1011 = reshape %1009 : tile<f32> -> tile<1xf32>
    %result_42 = broadcast %1011 : tile<1xf32> -> tile<64xf32>
    %1012 = reduce %a dim=0 identities=[1.0 : f32] : tile<64xf32> -> tile<f32>
        (%x_9: tile<f32>, %acc_8: tile<f32>) {
      %1013 = mulf %x_9, %acc_8 : tile<f32>
      yield %1013 : tile<f32>
    }
    %1014 = reshape %1012 : tile<f32> -> tile<1xf32>
    %result_43 = broadcast %1014 : tile<1xf32> -> tile<64xf32>
    %1015 = reduce %a dim=0 identities=[0x7F800000 : f32] : tile<64xf32> -> tile<f32>
        (%x_10: tile<f32>, %acc_9: tile<f32>) {
      %1016 = minf %x_10, %acc_9 : tile<f32>
      yield %1016 : tile<f32>
    }
    %1017 = reshape %1015 : tile<f32> -> tile<1xf32>
    %result_44 = broadcast %1017 : tile<1xf32> -> tile<64xf32>
    %1018 = reshape %a : tile<64xf32> -> tile<32x2x1xf32>
    %1019 = extract %1018[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %1020 = extract %1018[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %1021 = extract %1019[%c_0, %c_0, %c_0] : tile<32x1x1xf32> -> tile<32x1x1xf32>
    %1022 = cmpf greater_than ordered %1021, %1020 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %1023 = select %1022, %1021, %1020 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %1024 = cat %1019, %1023 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %1025 = reshape %1024 : tile<32x2x1xf32> -> tile<64xf32>
    %1026 = reshape %1025 : tile<64xf32> -> tile<16x2x2xf32>
    %1027 = extract %1026[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %1028 = extract %1026[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %1029 = extract %1027[%c_0, %c_0, %c_1] : tile<16x1x2xf32> -> tile<16x1x1xf32>
    %1030 = broadcast %1029 : tile<16x1x1xf32> -> tile<16x1x2xf32>
    %1031 = cmpf greater_than ordered %1030, %1028 : tile<16x1x2xf32> -> tile<16x1x2xi1>
    %1032 = select %1031, %1030, %1028 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %1033 = cat %1027, %1032 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %1034 = reshape %1033 : tile<16x2x2xf32> -> tile<64xf32>
    %1035 = reshape %1034 : tile<64xf32> -> tile<8x2x4xf32>
    %1036 = extract %1035[%c_0, %c_0, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %1037 = extract %1035[%c_0, %c_1, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %1038 = extract %1036[%c_0, %c_0, %c_3] : tile<8x1x4xf32> -> tile<8x1x1xf32>
    %1039 = broadcast %1038 : tile<8x1x1xf32> -> tile<8x1x4xf32>
    %1040 = cmpf greater_than ordered %1039, %1037 : tile<8x1x4xf32> -> tile<8x1x4xi1>
    %1041 = select %1040, %1039, %1037 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %1042 = cat %1036, %1041 dim = 1 : tile<8x1x4xf32>, tile<8x1x4xf32> -> tile<8x2x4xf32>
    %1043 = reshape %1042 : tile<8x2x4xf32> -> tile<64xf32>
    %1044 = reshape %1043 : tile<64xf32> -> tile<4x2x8xf32>
    %1045 = extract %1044[%c_0, %c_0, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %1046 = extract %1044[%c_0, %c_1, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %1047 = extract %1045[%c_0, %c_0, %c_7_1] : tile<4x1x8xf32> -> tile<4x1x1xf32>
    %1048 = broadcast %1047 : tile<4x1x1xf32> -> tile<4x1x8xf32>
    %1049 = cmpf greater_than ordered %1048, %1046 : tile<4x1x8xf32> -> tile<4x1x8xi1>
    %1050 = select %1049, %1048, %1046 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %1051 = cat %1045, %1050 dim = 1 : tile<4x1x8xf32>, tile<4x1x8xf32> -> tile<4x2x8xf32>
    %1052 = reshape %1051 : tile<4x2x8xf32> -> tile<64xf32>
    %1053 = reshape %1052 : tile<64xf32> -> tile<2x2x16xf32>
    %1054 = extract %1053[%c_0, %c_0, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %1055 = extract %1053[%c_0, %c_1, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %1056 = extract %1054[%c_0, %c_0, %c_15] : tile<2x1x16xf32> -> tile<2x1x1xf32>
    %1057 = broadcast %1056 : tile<2x1x1xf32> -> tile<2x1x16xf32>
    %1058 = cmpf greater_than ordered %1057, %1055 : tile<2x1x16xf32> -> tile<2x1x16xi1>
    %1059 = select %1058, %1057, %1055 : tile<2x1x16xi1>, tile<2x1x16xf32>
    %1060 = cat %1054, %1059 dim = 1 : tile<2x1x16xf32>, tile<2x1x16xf32> -> tile<2x2x16xf32>
    %1061 = reshape %1060 : tile<2x2x16xf32> -> tile<64xf32>
    %1062 = reshape %1061 : tile<64xf32> -> tile<1x2x32xf32>
    %1063 = extract %1062[%c_0, %c_0, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %1064 = extract %1062[%c_0, %c_1, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %1065 = extract %1063[%c_0, %c_0, %c_31] : tile<1x1x32xf32> -> tile<1x1x1xf32>
    %1066 = broadcast %1065 : tile<1x1x1xf32> -> tile<1x1x32xf32>
    %1067 = cmpf greater_than ordered %1066, %1064 : tile<1x1x32xf32> -> tile<1x1x32xi1>
    %1068 = select %1067, %1066, %1064 : tile<1x1x32xi1>, tile<1x1x32xf32>
    %1069 = cat %1063, %1068 dim = 1 : tile<1x1x32xf32>, tile<1x1x32xf32> -> tile<1x2x32xf32>
    %result_45 = reshape %1069 : tile<1x2x32xf32> -> tile<64xf32>
    %1070 = extract %a[%c_0] : tile<64xf32> -> tile<32xf32>
    %1071 = extract %a[%c_1] : tile<64xf32> -> tile<32xf32>
    %1072 = cmpf greater_than ordered %1070, %1071 : tile<32xf32> -> tile<32xi1>
    %1073 = select %1072, %1070, %1071 : tile<32xi1>, tile<32xf32>
    %1074 = extract %1073[%c_0] : tile<32xf32> -> tile<16xf32>
    %1075 = extract %1073[%c_1] : tile<32xf32> -> tile<16xf32>
    %1076 = cmpf greater_than ordered %1074, %1075 : tile<16xf32> -> tile<16xi1>
    %1077 = select %1076, %1074, %1075 : tile<16xi1>, tile<16xf32>
    %1078 = extract %1077[%c_0] : tile<16xf32> -> tile<8xf32>
    %1079 = extract %1077[%c_1] : tile<16xf32> -> tile<8xf32>
    %1080 = cmpf greater_than ordered %1078, %1079 : tile<8xf32> -> tile<8xi1>
    %1081 = select %1080, %1078, %1079 : tile<8xi1>, tile<8xf32>
    %1082 = extract %1081[%c_0] : tile<8xf32> -> tile<4xf32>
    %1083 = extract %1081[%c_1] : tile<8xf32> -> tile<4xf32>
    %1084 = cmpf greater_than ordered %1082, %1083 : tile<4xf32> -> tile<4xi1>
    %1085 = select %1084, %1082, %1083 : tile<4xi1>, tile<4xf32>
    %1086 = extract %1085[%c_0] : tile<4xf32> -> tile<2xf32>
    %1087 = extract %1085[%c_1] : tile<4xf32> -> tile<2xf32>
    %1088 = cmpf greater_than ordered %1086, %1087 : tile<2xf32> -> tile<2xi1>
    %1089 = select %1088, %1086, %1087 : tile<2xi1>, tile<2xf32>
    %1090 = extract %1089[%c_0] : tile<2xf32> -> tile<1xf32>
    %1091 = extract %1089[%c_1] : tile<2xf32> -> tile<1xf32>
    %1092 = cmpf greater_than ordered %1090, %1091 : tile<1xf32> -> tile<1xi1>
    %1093 = select %1092, %1090, %1091 : tile<1xi1>, tile<1xf32>
    %1094 = reshape %1093 : tile<1xf32> -> tile<f32>
    %1095 = reshape %1094 : tile<f32> -> tile<1xf32>
    %result_46 = broadcast %1095 : tile<1xf32> -> tile<64xf32>
    %1096 = offset %floats, %c_0 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1097 = reshape %1096 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1098 = broadcast %1097 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1099 = offset %1098, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %joined = join_tokens %read, %read_1, %read_2 : token
    %wrote = store_ptr_tko weak %1099, %result token = %joined
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1100 = offset %floats, %c_64 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1101 = reshape %1100 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1102 = broadcast %1101 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1103 = offset %1102, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_1 = store_ptr_tko weak %1103, %result_1 token = %wrote
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1104 = offset %floats, %c_128 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1105 = reshape %1104 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1106 = broadcast %1105 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1107 = offset %1106, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_2 = store_ptr_tko weak %1107, %result_2 token = %wrote_1
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1108 = offset %floats, %c_192 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1109 = reshape %1108 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1110 = broadcast %1109 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1111 = offset %1110, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_3 = store_ptr_tko weak %1111, %result_3 token = %wrote_2
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1112 = offset %floats, %c_256 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1113 = reshape %1112 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1114 = broadcast %1113 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1115 = offset %1114, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_4 = store_ptr_tko weak %1115, %result_4 token = %wrote_3
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1116 = offset %floats, %c_320 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1117 = reshape %1116 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1118 = broadcast %1117 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1119 = offset %1118, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_5 = store_ptr_tko weak %1119, %result_5 token = %wrote_4
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1120 = offset %floats, %c_384 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1121 = reshape %1120 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1122 = broadcast %1121 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1123 = offset %1122, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_6 = store_ptr_tko weak %1123, %result_6 token = %wrote_5
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1124 = offset %floats, %c_448 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1125 = reshape %1124 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1126 = broadcast %1125 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1127 = offset %1126, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_7 = store_ptr_tko weak %1127, %result_7 token = %wrote_6
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1128 = offset %floats, %c_512 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1129 = reshape %1128 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1130 = broadcast %1129 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1131 = offset %1130, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_8 = store_ptr_tko weak %1131, %result_8 token = %wrote_7
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1132 = offset %floats, %c_576 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1133 = reshape %1132 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1134 = broadcast %1133 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1135 = offset %1134, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_9 = store_ptr_tko weak %1135, %result_9 token = %wrote_8
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1136 = offset %floats, %c_640 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1137 = reshape %1136 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1138 = broadcast %1137 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1139 = offset %1138, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_10 = store_ptr_tko weak %1139, %result_10 token = %wrote_9
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1140 = offset %floats, %c_704 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1141 = reshape %1140 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1142 = broadcast %1141 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1143 = offset %1142, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_11 = store_ptr_tko weak %1143, %result_11 token = %wrote_10
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1144 = offset %floats, %c_768 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1145 = reshape %1144 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1146 = broadcast %1145 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1147 = offset %1146, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_12 = store_ptr_tko weak %1147, %result_12 token = %wrote_11
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1148 = offset %floats, %c_832 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1149 = reshape %1148 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1150 = broadcast %1149 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1151 = offset %1150, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_13 = store_ptr_tko weak %1151, %result_13 token = %wrote_12
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1152 = offset %floats, %c_896 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1153 = reshape %1152 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1154 = broadcast %1153 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1155 = offset %1154, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_14 = store_ptr_tko weak %1155, %result_14 token = %wrote_13
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1156 = offset %floats, %c_960 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1157 = reshape %1156 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1158 = broadcast %1157 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1159 = offset %1158, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_15 = store_ptr_tko weak %1159, %result_15 token = %wrote_14
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1160 = offset %floats, %c_1024 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1161 = reshape %1160 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1162 = broadcast %1161 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1163 = offset %1162, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_16 = store_ptr_tko weak %1163, %result_16 token = %wrote_15
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1164 = offset %floats, %c_1088 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1165 = reshape %1164 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1166 = broadcast %1165 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1167 = offset %1166, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_17 = store_ptr_tko weak %1167, %result_17 token = %wrote_16
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1168 = offset %floats, %c_1152 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1169 = reshape %1168 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1170 = broadcast %1169 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1171 = offset %1170, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_18 = store_ptr_tko weak %1171, %result_18 token = %wrote_17
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1172 = offset %floats, %c_1216 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1173 = reshape %1172 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1174 = broadcast %1173 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1175 = offset %1174, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_19 = store_ptr_tko weak %1175, %result_19 token = %wrote_18
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1176 = offset %floats, %c_1280 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1177 = reshape %1176 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1178 = broadcast %1177 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1179 = offset %1178, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_20 = store_ptr_tko weak %1179, %result_20 token = %wrote_19
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1180 = offset %floats, %c_1344 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1181 = reshape %1180 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1182 = broadcast %1181 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1183 = offset %1182, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_21 = store_ptr_tko weak %1183, %result_21 token = %wrote_20
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1184 = offset %floats, %c_1408 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1185 = reshape %1184 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1186 = broadcast %1185 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1187 = offset %1186, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_22 = store_ptr_tko weak %1187, %result_22 token = %wrote_21
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1188 = offset %floats, %c_1472 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1189 = reshape %1188 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1190 = broadcast %1189 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1191 = offset %1190, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_23 = store_ptr_tko weak %1191, %result_23 token = %wrote_22
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1192 = offset %floats, %c_1536 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1193 = reshape %1192 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1194 = broadcast %1193 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1195 = offset %1194, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_24 = store_ptr_tko weak %1195, %result_24 token = %wrote_23
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1196 = offset %floats, %c_1600 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1197 = reshape %1196 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1198 = broadcast %1197 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1199 = offset %1198, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_25 = store_ptr_tko weak %1199, %result_25 token = %wrote_24
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1200 = offset %floats, %c_1664 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1201 = reshape %1200 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1202 = broadcast %1201 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1203 = offset %1202, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_26 = store_ptr_tko weak %1203, %result_26 token = %wrote_25
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1204 = offset %floats, %c_1728 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1205 = reshape %1204 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1206 = broadcast %1205 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1207 = offset %1206, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_27 = store_ptr_tko weak %1207, %result_27 token = %wrote_26
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1208 = offset %floats, %c_1792 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1209 = reshape %1208 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1210 = broadcast %1209 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1211 = offset %1210, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_28 = store_ptr_tko weak %1211, %result_28 token = %wrote_27
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1212 = offset %floats, %c_1856 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1213 = reshape %1212 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1214 = broadcast %1213 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1215 = offset %1214, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_29 = store_ptr_tko weak %1215, %result_29 token = %wrote_28
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1216 = offset %floats, %c_1920 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1217 = reshape %1216 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1218 = broadcast %1217 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1219 = offset %1218, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_30 = store_ptr_tko weak %1219, %result_30 token = %wrote_29
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1220 = offset %floats, %c_1984 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1221 = reshape %1220 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1222 = broadcast %1221 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1223 = offset %1222, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_31 = store_ptr_tko weak %1223, %result_31 token = %wrote_30
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1224 = offset %floats, %c_2048 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1225 = reshape %1224 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1226 = broadcast %1225 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1227 = offset %1226, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_32 = store_ptr_tko weak %1227, %result_32 token = %wrote_31
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1228 = offset %floats, %c_2112 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1229 = reshape %1228 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1230 = broadcast %1229 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1231 = offset %1230, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_33 = store_ptr_tko weak %1231, %result_33 token = %wrote_32
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1232 = offset %floats, %c_2176 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1233 = reshape %1232 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1234 = broadcast %1233 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1235 = offset %1234, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_34 = store_ptr_tko weak %1235, %result_34 token = %wrote_33
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1236 = offset %floats, %c_2240 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1237 = reshape %1236 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1238 = broadcast %1237 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1239 = offset %1238, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_35 = store_ptr_tko weak %1239, %result_35 token = %wrote_34
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1240 = offset %floats, %c_2304 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1241 = reshape %1240 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1242 = broadcast %1241 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1243 = offset %1242, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_36 = store_ptr_tko weak %1243, %result_36 token = %wrote_35
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1244 = offset %floats, %c_2368 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1245 = reshape %1244 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1246 = broadcast %1245 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1247 = offset %1246, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_37 = store_ptr_tko weak %1247, %result_37 token = %wrote_36
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1248 = offset %floats, %c_2432 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1249 = reshape %1248 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1250 = broadcast %1249 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1251 = offset %1250, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_38 = store_ptr_tko weak %1251, %result_38 token = %wrote_37
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1252 = offset %floats, %c_2496 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1253 = reshape %1252 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1254 = broadcast %1253 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1255 = offset %1254, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_39 = store_ptr_tko weak %1255, %result_39 token = %wrote_38
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1256 = offset %floats, %c_2560 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1257 = reshape %1256 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1258 = broadcast %1257 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1259 = offset %1258, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_40 = store_ptr_tko weak %1259, %result_40 token = %wrote_39
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1260 = offset %floats, %c_2624 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1261 = reshape %1260 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1262 = broadcast %1261 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1263 = offset %1262, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_41 = store_ptr_tko weak %1263, %result_41 token = %wrote_40
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1264 = offset %floats, %c_2688 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1265 = reshape %1264 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1266 = broadcast %1265 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1267 = offset %1266, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_42 = store_ptr_tko weak %1267, %result_42 token = %wrote_41
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1268 = offset %floats, %c_2752 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1269 = reshape %1268 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1270 = broadcast %1269 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1271 = offset %1270, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_43 = store_ptr_tko weak %1271, %result_43 token = %wrote_42
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1272 = offset %floats, %c_2816 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1273 = reshape %1272 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1274 = broadcast %1273 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1275 = offset %1274, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_44 = store_ptr_tko weak %1275, %result_44 token = %wrote_43
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1276 = offset %floats, %c_2880 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1277 = reshape %1276 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1278 = broadcast %1277 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1279 = offset %1278, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_45 = store_ptr_tko weak %1279, %result_45 token = %wrote_44
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1280 = offset %floats, %c_2944 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1281 = reshape %1280 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1282 = broadcast %1281 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1283 = offset %1282, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_46 = store_ptr_tko weak %1283, %result_46 token = %wrote_45
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1284 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1285 = broadcast %1284 : tile<1xi32> -> tile<64xi32>
    %result_47 = addi %n, %1285 : tile<64xi32>
    %1286 = muli %n, %n : tile<64xi32>
    %result_48 = subi %n, %1286 : tile<64xi32>
    %1287 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1288 = broadcast %1287 : tile<1xi32> -> tile<64xi32>
    %result_49 = divi %n, %1288 signed : tile<64xi32>
    %1289 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1290 = broadcast %1289 : tile<1xi32> -> tile<64xi32>
    %result_50 = remi %n, %1290 signed : tile<64xi32>
    %1291 = reshape %c_5 : tile<i32> -> tile<1xi32>
    %1292 = broadcast %1291 : tile<1xi32> -> tile<64xi32>
    %result_51 = andi %n, %1292 : tile<64xi32>
    %1293 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1294 = broadcast %1293 : tile<1xi32> -> tile<64xi32>
    %result_52 = ori %n, %1294 : tile<64xi32>
    %1295 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1296 = broadcast %1295 : tile<1xi32> -> tile<64xi32>
    %result_53 = xori %n, %1296 : tile<64xi32>
    %result_54 = xori %n, %c_minus_1 : tile<64xi32>
    %1297 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1298 = broadcast %1297 : tile<1xi32> -> tile<64xi32>
    %result_55 = shli %n, %1298 : tile<64xi32>
    %1299 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1300 = broadcast %1299 : tile<1xi32> -> tile<64xi32>
    %result_56 = shri %n, %1300 signed : tile<64xi32>
    %result_57 = negi %n : tile<64xi32>
    %result_58 = absi %n : tile<64xi32>
    %1301 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1302 = broadcast %1301 : tile<1xi32> -> tile<64xi32>
    %result_59 = maxi %n, %1302 signed : tile<64xi32>
    %result_60 = ftoi %a signed : tile<64xf32> -> tile<64xi32>
    %1303 = cmpf less_than ordered %a, %b : tile<64xf32> -> tile<64xi1>
    %result_61 = exti %1303 unsigned : tile<64xi1> -> tile<64xi32>
    %1304 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1305 = broadcast %1304 : tile<1xi32> -> tile<64xi32>
    %1306 = cmpi not_equal %n, %1305, signed : tile<64xi32> -> tile<64xi1>
    %result_62 = exti %1306 unsigned : tile<64xi1> -> tile<64xi32>
    %1307 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %1308 = broadcast %1307 : tile<1xi32> -> tile<64xi32>
    %1309 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %1310 = broadcast %1309 : tile<1xi32> -> tile<64xi32>
    %1311 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %1312 = broadcast %1311 : tile<1xi32> -> tile<64xi32>
    %1313 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1314 = broadcast %1313 : tile<1xi32> -> tile<64xi32>
    %1315 = mulhii %1310, %1314 : tile<64xi32>
    %1316 = xori %1315, %1308 : tile<64xi32>
    %1317 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %1318 = broadcast %1317 : tile<1xi32> -> tile<64xi32>
    %1319 = xori %1316, %1318 : tile<64xi32>
    %1320 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1321 = broadcast %1320 : tile<1xi32> -> tile<64xi32>
    %1322 = muli %1310, %1321 : tile<64xi32>
    %1323 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1324 = broadcast %1323 : tile<1xi32> -> tile<64xi32>
    %1325 = mulhii %i, %1324 : tile<64xi32>
    %1326 = xori %1325, %1312 : tile<64xi32>
    %1327 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %1328 = broadcast %1327 : tile<1xi32> -> tile<64xi32>
    %1329 = xori %1326, %1328 : tile<64xi32>
    %1330 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1331 = broadcast %1330 : tile<1xi32> -> tile<64xi32>
    %1332 = muli %i, %1331 : tile<64xi32>
    %1333 = addi %c_7, %c_2654435769 : tile<i32>
    %1334 = addi %c_0_2, %c_3144134277 : tile<i32>
    %1335 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1336 = broadcast %1335 : tile<1xi32> -> tile<64xi32>
    %1337 = mulhii %1329, %1336 : tile<64xi32>
    %1338 = xori %1337, %1322 : tile<64xi32>
    %1339 = reshape %1333 : tile<i32> -> tile<1xi32>
    %1340 = broadcast %1339 : tile<1xi32> -> tile<64xi32>
    %1341 = xori %1338, %1340 : tile<64xi32>
    %1342 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1343 = broadcast %1342 : tile<1xi32> -> tile<64xi32>
    %1344 = muli %1329, %1343 : tile<64xi32>
    %1345 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1346 = broadcast %1345 : tile<1xi32> -> tile<64xi32>
    %1347 = mulhii %1319, %1346 : tile<64xi32>
    %1348 = xori %1347, %1332 : tile<64xi32>
    %1349 = reshape %1334 : tile<i32> -> tile<1xi32>
    %1350 = broadcast %1349 : tile<1xi32> -> tile<64xi32>
    %1351 = xori %1348, %1350 : tile<64xi32>
    %1352 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1353 = broadcast %1352 : tile<1xi32> -> tile<64xi32>
    %1354 = muli %1319, %1353 : tile<64xi32>
    %1355 = addi %1333, %c_2654435769 : tile<i32>
    %1356 = addi %1334, %c_3144134277 : tile<i32>
    %1357 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1358 = broadcast %1357 : tile<1xi32> -> tile<64xi32>
    %1359 = mulhii %1351, %1358 : tile<64xi32>
    %1360 = xori %1359, %1344 : tile<64xi32>
    %1361 = reshape %1355 : tile<i32> -> tile<1xi32>
    %1362 = broadcast %1361 : tile<1xi32> -> tile<64xi32>
    %1363 = xori %1360, %1362 : tile<64xi32>
    %1364 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1365 = broadcast %1364 : tile<1xi32> -> tile<64xi32>
    %1366 = muli %1351, %1365 : tile<64xi32>
    %1367 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1368 = broadcast %1367 : tile<1xi32> -> tile<64xi32>
    %1369 = mulhii %1341, %1368 : tile<64xi32>
    %1370 = xori %1369, %1354 : tile<64xi32>
    %1371 = reshape %1356 : tile<i32> -> tile<1xi32>
    %1372 = broadcast %1371 : tile<1xi32> -> tile<64xi32>
    %1373 = xori %1370, %1372 : tile<64xi32>
    %1374 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1375 = broadcast %1374 : tile<1xi32> -> tile<64xi32>
    %1376 = muli %1341, %1375 : tile<64xi32>
    %1377 = addi %1355, %c_2654435769 : tile<i32>
    %1378 = addi %1356, %c_3144134277 : tile<i32>
    %1379 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1380 = broadcast %1379 : tile<1xi32> -> tile<64xi32>
    %1381 = mulhii %1373, %1380 : tile<64xi32>
    %1382 = xori %1381, %1366 : tile<64xi32>
    %1383 = reshape %1377 : tile<i32> -> tile<1xi32>
    %1384 = broadcast %1383 : tile<1xi32> -> tile<64xi32>
    %1385 = xori %1382, %1384 : tile<64xi32>
    %1386 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1387 = broadcast %1386 : tile<1xi32> -> tile<64xi32>
    %1388 = muli %1373, %1387 : tile<64xi32>
    %1389 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1390 = broadcast %1389 : tile<1xi32> -> tile<64xi32>
    %1391 = mulhii %1363, %1390 : tile<64xi32>
    %1392 = xori %1391, %1376 : tile<64xi32>
    %1393 = reshape %1378 : tile<i32> -> tile<1xi32>
    %1394 = broadcast %1393 : tile<1xi32> -> tile<64xi32>
    %1395 = xori %1392, %1394 : tile<64xi32>
    %1396 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1397 = broadcast %1396 : tile<1xi32> -> tile<64xi32>
    %1398 = muli %1363, %1397 : tile<64xi32>
    %1399 = addi %1377, %c_2654435769 : tile<i32>
    %1400 = addi %1378, %c_3144134277 : tile<i32>
    %1401 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1402 = broadcast %1401 : tile<1xi32> -> tile<64xi32>
    %1403 = mulhii %1395, %1402 : tile<64xi32>
    %1404 = xori %1403, %1388 : tile<64xi32>
    %1405 = reshape %1399 : tile<i32> -> tile<1xi32>
    %1406 = broadcast %1405 : tile<1xi32> -> tile<64xi32>
    %1407 = xori %1404, %1406 : tile<64xi32>
    %1408 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1409 = broadcast %1408 : tile<1xi32> -> tile<64xi32>
    %1410 = muli %1395, %1409 : tile<64xi32>
    %1411 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1412 = broadcast %1411 : tile<1xi32> -> tile<64xi32>
    %1413 = mulhii %1385, %1412 : tile<64xi32>
    %1414 = xori %1413, %1398 : tile<64xi32>
    %1415 = reshape %1400 : tile<i32> -> tile<1xi32>
    %1416 = broadcast %1415 : tile<1xi32> -> tile<64xi32>
    %1417 = xori %1414, %1416 : tile<64xi32>
    %1418 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1419 = broadcast %1418 : tile<1xi32> -> tile<64xi32>
    %1420 = muli %1385, %1419 : tile<64xi32>
    %1421 = addi %1399, %c_2654435769 : tile<i32>
    %1422 = addi %1400, %c_3144134277 : tile<i32>
    %1423 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1424 = broadcast %1423 : tile<1xi32> -> tile<64xi32>
    %1425 = mulhii %1417, %1424 : tile<64xi32>
    %1426 = xori %1425, %1410 : tile<64xi32>
    %1427 = reshape %1421 : tile<i32> -> tile<1xi32>
    %1428 = broadcast %1427 : tile<1xi32> -> tile<64xi32>
    %1429 = xori %1426, %1428 : tile<64xi32>
    %1430 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1431 = broadcast %1430 : tile<1xi32> -> tile<64xi32>
    %1432 = muli %1417, %1431 : tile<64xi32>
    %1433 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1434 = broadcast %1433 : tile<1xi32> -> tile<64xi32>
    %1435 = mulhii %1407, %1434 : tile<64xi32>
    %1436 = xori %1435, %1420 : tile<64xi32>
    %1437 = reshape %1422 : tile<i32> -> tile<1xi32>
    %1438 = broadcast %1437 : tile<1xi32> -> tile<64xi32>
    %1439 = xori %1436, %1438 : tile<64xi32>
    %1440 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1441 = broadcast %1440 : tile<1xi32> -> tile<64xi32>
    %1442 = muli %1407, %1441 : tile<64xi32>
    %1443 = addi %1421, %c_2654435769 : tile<i32>
    %1444 = addi %1422, %c_3144134277 : tile<i32>
    %1445 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1446 = broadcast %1445 : tile<1xi32> -> tile<64xi32>
    %1447 = mulhii %1439, %1446 : tile<64xi32>
    %1448 = xori %1447, %1432 : tile<64xi32>
    %1449 = reshape %1443 : tile<i32> -> tile<1xi32>
    %1450 = broadcast %1449 : tile<1xi32> -> tile<64xi32>
    %1451 = xori %1448, %1450 : tile<64xi32>
    %1452 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1453 = broadcast %1452 : tile<1xi32> -> tile<64xi32>
    %1454 = muli %1439, %1453 : tile<64xi32>
    %1455 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1456 = broadcast %1455 : tile<1xi32> -> tile<64xi32>
    %1457 = mulhii %1429, %1456 : tile<64xi32>
    %1458 = xori %1457, %1442 : tile<64xi32>
    %1459 = reshape %1444 : tile<i32> -> tile<1xi32>
    %1460 = broadcast %1459 : tile<1xi32> -> tile<64xi32>
    %1461 = xori %1458, %1460 : tile<64xi32>
    %1462 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1463 = broadcast %1462 : tile<1xi32> -> tile<64xi32>
    %1464 = muli %1429, %1463 : tile<64xi32>
    %1465 = addi %1443, %c_2654435769 : tile<i32>
    %1466 = addi %1444, %c_3144134277 : tile<i32>
    %1467 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1468 = broadcast %1467 : tile<1xi32> -> tile<64xi32>
    %1469 = mulhii %1461, %1468 : tile<64xi32>
    %1470 = xori %1469, %1454 : tile<64xi32>
    %1471 = reshape %1465 : tile<i32> -> tile<1xi32>
    %1472 = broadcast %1471 : tile<1xi32> -> tile<64xi32>
    %1473 = xori %1470, %1472 : tile<64xi32>
    %1474 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1475 = broadcast %1474 : tile<1xi32> -> tile<64xi32>
    %1476 = mulhii %1451, %1475 : tile<64xi32>
    %1477 = xori %1476, %1464 : tile<64xi32>
    %1478 = reshape %1466 : tile<i32> -> tile<1xi32>
    %1479 = broadcast %1478 : tile<1xi32> -> tile<64xi32>
    %1480 = xori %1477, %1479 : tile<64xi32>
    %1481 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1482 = broadcast %1481 : tile<1xi32> -> tile<64xi32>
    %1483 = muli %1451, %1482 : tile<64xi32>
    %1484 = addi %1465, %c_2654435769 : tile<i32>
    %1485 = addi %1466, %c_3144134277 : tile<i32>
    %1486 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1487 = broadcast %1486 : tile<1xi32> -> tile<64xi32>
    %1488 = muli %1480, %1487 : tile<64xi32>
    %1489 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1490 = broadcast %1489 : tile<1xi32> -> tile<64xi32>
    %1491 = mulhii %1473, %1490 : tile<64xi32>
    %1492 = xori %1491, %1483 : tile<64xi32>
    %1493 = reshape %1485 : tile<i32> -> tile<1xi32>
    %1494 = broadcast %1493 : tile<1xi32> -> tile<64xi32>
    %1495 = xori %1492, %1494 : tile<64xi32>
    %1496 = addi %1484, %c_2654435769 : tile<i32>
    %1497 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1498 = broadcast %1497 : tile<1xi32> -> tile<64xi32>
    %1499 = mulhii %1495, %1498 : tile<64xi32>
    %1500 = xori %1499, %1488 : tile<64xi32>
    %1501 = reshape %1496 : tile<i32> -> tile<1xi32>
    %1502 = broadcast %1501 : tile<1xi32> -> tile<64xi32>
    %result_63 = xori %1500, %1502 : tile<64xi32>
    %result_64 = scan %n dim=0 reverse=false identities=[0 : i32] : tile<64xi32> -> tile<64xi32>
        (%x_11: tile<i32>, %acc_10: tile<i32>) {
      %1503 = addi %x_11, %acc_10 : tile<i32>
      yield %1503 : tile<i32>
    }
    %1504 = iota : tile<32xi32>
    %1505 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1506 = broadcast %1505 : tile<1xi32> -> tile<32xi32>
    %1507 = muli %1504, %1506 : tile<32xi32>
    %1508 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1509 = broadcast %1508 : tile<1xi32> -> tile<32xi32>
    %1510 = divi %1507, %1509 signed : tile<32xi32>
    %1511 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1512 = broadcast %1511 : tile<1xi32> -> tile<32xi32>
    %1513 = remi %1510, %1512 signed : tile<32xi32>
    %1514 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1515 = broadcast %1514 : tile<1xi32> -> tile<32xi32>
    %1516 = cmpi equal %1513, %1515, signed : tile<32xi32> -> tile<32xi1>
    %1517 = reshape %1516 : tile<32xi1> -> tile<32x1x1xi1>
    %1518 = reshape %n : tile<64xi32> -> tile<32x2x1xi32>
    %1519 = extract %1518[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1520 = extract %1518[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1521 = cmpi greater_than %1519, %1520, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1522 = xori %1521, %1517 : tile<32x1x1xi1>
    %1523 = select %1522, %1520, %1519 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1524 = select %1522, %1519, %1520 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1525 = cat %1523, %1524 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1526 = reshape %1525 : tile<32x2x1xi32> -> tile<64xi32>
    %1527 = iota : tile<16xi32>
    %1528 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1529 = broadcast %1528 : tile<1xi32> -> tile<16xi32>
    %1530 = muli %1527, %1529 : tile<16xi32>
    %1531 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1532 = broadcast %1531 : tile<1xi32> -> tile<16xi32>
    %1533 = divi %1530, %1532 signed : tile<16xi32>
    %1534 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1535 = broadcast %1534 : tile<1xi32> -> tile<16xi32>
    %1536 = remi %1533, %1535 signed : tile<16xi32>
    %1537 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1538 = broadcast %1537 : tile<1xi32> -> tile<16xi32>
    %1539 = cmpi equal %1536, %1538, signed : tile<16xi32> -> tile<16xi1>
    %1540 = reshape %1539 : tile<16xi1> -> tile<16x1x1xi1>
    %1541 = reshape %1526 : tile<64xi32> -> tile<16x2x2xi32>
    %1542 = extract %1541[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1543 = extract %1541[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1544 = cmpi greater_than %1542, %1543, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1545 = broadcast %1540 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1546 = xori %1544, %1545 : tile<16x1x2xi1>
    %1547 = select %1546, %1543, %1542 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1548 = select %1546, %1542, %1543 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1549 = cat %1547, %1548 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1550 = reshape %1549 : tile<16x2x2xi32> -> tile<64xi32>
    %1551 = iota : tile<32xi32>
    %1552 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1553 = broadcast %1552 : tile<1xi32> -> tile<32xi32>
    %1554 = muli %1551, %1553 : tile<32xi32>
    %1555 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1556 = broadcast %1555 : tile<1xi32> -> tile<32xi32>
    %1557 = divi %1554, %1556 signed : tile<32xi32>
    %1558 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1559 = broadcast %1558 : tile<1xi32> -> tile<32xi32>
    %1560 = remi %1557, %1559 signed : tile<32xi32>
    %1561 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1562 = broadcast %1561 : tile<1xi32> -> tile<32xi32>
    %1563 = cmpi equal %1560, %1562, signed : tile<32xi32> -> tile<32xi1>
    %1564 = reshape %1563 : tile<32xi1> -> tile<32x1x1xi1>
    %1565 = reshape %1550 : tile<64xi32> -> tile<32x2x1xi32>
    %1566 = extract %1565[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1567 = extract %1565[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1568 = cmpi greater_than %1566, %1567, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1569 = xori %1568, %1564 : tile<32x1x1xi1>
    %1570 = select %1569, %1567, %1566 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1571 = select %1569, %1566, %1567 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1572 = cat %1570, %1571 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1573 = reshape %1572 : tile<32x2x1xi32> -> tile<64xi32>
    %1574 = iota : tile<8xi32>
    %1575 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1576 = broadcast %1575 : tile<1xi32> -> tile<8xi32>
    %1577 = muli %1574, %1576 : tile<8xi32>
    %1578 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1579 = broadcast %1578 : tile<1xi32> -> tile<8xi32>
    %1580 = divi %1577, %1579 signed : tile<8xi32>
    %1581 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1582 = broadcast %1581 : tile<1xi32> -> tile<8xi32>
    %1583 = remi %1580, %1582 signed : tile<8xi32>
    %1584 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1585 = broadcast %1584 : tile<1xi32> -> tile<8xi32>
    %1586 = cmpi equal %1583, %1585, signed : tile<8xi32> -> tile<8xi1>
    %1587 = reshape %1586 : tile<8xi1> -> tile<8x1x1xi1>
    %1588 = reshape %1573 : tile<64xi32> -> tile<8x2x4xi32>
    %1589 = extract %1588[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1590 = extract %1588[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1591 = cmpi greater_than %1589, %1590, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1592 = broadcast %1587 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1593 = xori %1591, %1592 : tile<8x1x4xi1>
    %1594 = select %1593, %1590, %1589 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1595 = select %1593, %1589, %1590 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1596 = cat %1594, %1595 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1597 = reshape %1596 : tile<8x2x4xi32> -> tile<64xi32>
    %1598 = iota : tile<16xi32>
    %1599 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1600 = broadcast %1599 : tile<1xi32> -> tile<16xi32>
    %1601 = muli %1598, %1600 : tile<16xi32>
    %1602 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1603 = broadcast %1602 : tile<1xi32> -> tile<16xi32>
    %1604 = divi %1601, %1603 signed : tile<16xi32>
    %1605 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1606 = broadcast %1605 : tile<1xi32> -> tile<16xi32>
    %1607 = remi %1604, %1606 signed : tile<16xi32>
    %1608 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1609 = broadcast %1608 : tile<1xi32> -> tile<16xi32>
    %1610 = cmpi equal %1607, %1609, signed : tile<16xi32> -> tile<16xi1>
    %1611 = reshape %1610 : tile<16xi1> -> tile<16x1x1xi1>
    %1612 = reshape %1597 : tile<64xi32> -> tile<16x2x2xi32>
    %1613 = extract %1612[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1614 = extract %1612[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1615 = cmpi greater_than %1613, %1614, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1616 = broadcast %1611 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1617 = xori %1615, %1616 : tile<16x1x2xi1>
    %1618 = select %1617, %1614, %1613 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1619 = select %1617, %1613, %1614 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1620 = cat %1618, %1619 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1621 = reshape %1620 : tile<16x2x2xi32> -> tile<64xi32>
    %1622 = iota : tile<32xi32>
    %1623 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1624 = broadcast %1623 : tile<1xi32> -> tile<32xi32>
    %1625 = muli %1622, %1624 : tile<32xi32>
    %1626 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1627 = broadcast %1626 : tile<1xi32> -> tile<32xi32>
    %1628 = divi %1625, %1627 signed : tile<32xi32>
    %1629 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1630 = broadcast %1629 : tile<1xi32> -> tile<32xi32>
    %1631 = remi %1628, %1630 signed : tile<32xi32>
    %1632 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1633 = broadcast %1632 : tile<1xi32> -> tile<32xi32>
    %1634 = cmpi equal %1631, %1633, signed : tile<32xi32> -> tile<32xi1>
    %1635 = reshape %1634 : tile<32xi1> -> tile<32x1x1xi1>
    %1636 = reshape %1621 : tile<64xi32> -> tile<32x2x1xi32>
    %1637 = extract %1636[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1638 = extract %1636[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1639 = cmpi greater_than %1637, %1638, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1640 = xori %1639, %1635 : tile<32x1x1xi1>
    %1641 = select %1640, %1638, %1637 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1642 = select %1640, %1637, %1638 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1643 = cat %1641, %1642 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1644 = reshape %1643 : tile<32x2x1xi32> -> tile<64xi32>
    %1645 = iota : tile<4xi32>
    %1646 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1647 = broadcast %1646 : tile<1xi32> -> tile<4xi32>
    %1648 = muli %1645, %1647 : tile<4xi32>
    %1649 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1650 = broadcast %1649 : tile<1xi32> -> tile<4xi32>
    %1651 = divi %1648, %1650 signed : tile<4xi32>
    %1652 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1653 = broadcast %1652 : tile<1xi32> -> tile<4xi32>
    %1654 = remi %1651, %1653 signed : tile<4xi32>
    %1655 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1656 = broadcast %1655 : tile<1xi32> -> tile<4xi32>
    %1657 = cmpi equal %1654, %1656, signed : tile<4xi32> -> tile<4xi1>
    %1658 = reshape %1657 : tile<4xi1> -> tile<4x1x1xi1>
    %1659 = reshape %1644 : tile<64xi32> -> tile<4x2x8xi32>
    %1660 = extract %1659[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1661 = extract %1659[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1662 = cmpi greater_than %1660, %1661, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1663 = broadcast %1658 : tile<4x1x1xi1> -> tile<4x1x8xi1>
    %1664 = xori %1662, %1663 : tile<4x1x8xi1>
    %1665 = select %1664, %1661, %1660 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1666 = select %1664, %1660, %1661 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1667 = cat %1665, %1666 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1668 = reshape %1667 : tile<4x2x8xi32> -> tile<64xi32>
    %1669 = iota : tile<8xi32>
    %1670 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1671 = broadcast %1670 : tile<1xi32> -> tile<8xi32>
    %1672 = muli %1669, %1671 : tile<8xi32>
    %1673 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1674 = broadcast %1673 : tile<1xi32> -> tile<8xi32>
    %1675 = divi %1672, %1674 signed : tile<8xi32>
    %1676 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1677 = broadcast %1676 : tile<1xi32> -> tile<8xi32>
    %1678 = remi %1675, %1677 signed : tile<8xi32>
    %1679 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1680 = broadcast %1679 : tile<1xi32> -> tile<8xi32>
    %1681 = cmpi equal %1678, %1680, signed : tile<8xi32> -> tile<8xi1>
    %1682 = reshape %1681 : tile<8xi1> -> tile<8x1x1xi1>
    %1683 = reshape %1668 : tile<64xi32> -> tile<8x2x4xi32>
    %1684 = extract %1683[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1685 = extract %1683[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1686 = cmpi greater_than %1684, %1685, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1687 = broadcast %1682 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1688 = xori %1686, %1687 : tile<8x1x4xi1>
    %1689 = select %1688, %1685, %1684 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1690 = select %1688, %1684, %1685 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1691 = cat %1689, %1690 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1692 = reshape %1691 : tile<8x2x4xi32> -> tile<64xi32>
    %1693 = iota : tile<16xi32>
    %1694 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1695 = broadcast %1694 : tile<1xi32> -> tile<16xi32>
    %1696 = muli %1693, %1695 : tile<16xi32>
    %1697 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1698 = broadcast %1697 : tile<1xi32> -> tile<16xi32>
    %1699 = divi %1696, %1698 signed : tile<16xi32>
    %1700 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1701 = broadcast %1700 : tile<1xi32> -> tile<16xi32>
    %1702 = remi %1699, %1701 signed : tile<16xi32>
    %1703 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1704 = broadcast %1703 : tile<1xi32> -> tile<16xi32>
    %1705 = cmpi equal %1702, %1704, signed : tile<16xi32> -> tile<16xi1>
    %1706 = reshape %1705 : tile<16xi1> -> tile<16x1x1xi1>
    %1707 = reshape %1692 : tile<64xi32> -> tile<16x2x2xi32>
    %1708 = extract %1707[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1709 = extract %1707[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1710 = cmpi greater_than %1708, %1709, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1711 = broadcast %1706 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1712 = xori %1710, %1711 : tile<16x1x2xi1>
    %1713 = select %1712, %1709, %1708 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1714 = select %1712, %1708, %1709 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1715 = cat %1713, %1714 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1716 = reshape %1715 : tile<16x2x2xi32> -> tile<64xi32>
    %1717 = iota : tile<32xi32>
    %1718 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1719 = broadcast %1718 : tile<1xi32> -> tile<32xi32>
    %1720 = muli %1717, %1719 : tile<32xi32>
    %1721 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1722 = broadcast %1721 : tile<1xi32> -> tile<32xi32>
    %1723 = divi %1720, %1722 signed : tile<32xi32>
    %1724 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1725 = broadcast %1724 : tile<1xi32> -> tile<32xi32>
    %1726 = remi %1723, %1725 signed : tile<32xi32>
    %1727 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1728 = broadcast %1727 : tile<1xi32> -> tile<32xi32>
    %1729 = cmpi equal %1726, %1728, signed : tile<32xi32> -> tile<32xi1>
    %1730 = reshape %1729 : tile<32xi1> -> tile<32x1x1xi1>
    %1731 = reshape %1716 : tile<64xi32> -> tile<32x2x1xi32>
    %1732 = extract %1731[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1733 = extract %1731[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1734 = cmpi greater_than %1732, %1733, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1735 = xori %1734, %1730 : tile<32x1x1xi1>
    %1736 = select %1735, %1733, %1732 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1737 = select %1735, %1732, %1733 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1738 = cat %1736, %1737 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1739 = reshape %1738 : tile<32x2x1xi32> -> tile<64xi32>
    %1740 = iota : tile<2xi32>
    %1741 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1742 = broadcast %1741 : tile<1xi32> -> tile<2xi32>
    %1743 = muli %1740, %1742 : tile<2xi32>
    %1744 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1745 = broadcast %1744 : tile<1xi32> -> tile<2xi32>
    %1746 = divi %1743, %1745 signed : tile<2xi32>
    %1747 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1748 = broadcast %1747 : tile<1xi32> -> tile<2xi32>
    %1749 = remi %1746, %1748 signed : tile<2xi32>
    %1750 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1751 = broadcast %1750 : tile<1xi32> -> tile<2xi32>
    %1752 = cmpi equal %1749, %1751, signed : tile<2xi32> -> tile<2xi1>
    %1753 = reshape %1752 : tile<2xi1> -> tile<2x1x1xi1>
    %1754 = reshape %1739 : tile<64xi32> -> tile<2x2x16xi32>
    %1755 = extract %1754[%c_0, %c_0, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1756 = extract %1754[%c_0, %c_1, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1757 = cmpi greater_than %1755, %1756, signed : tile<2x1x16xi32> -> tile<2x1x16xi1>
    %1758 = broadcast %1753 : tile<2x1x1xi1> -> tile<2x1x16xi1>
    %1759 = xori %1757, %1758 : tile<2x1x16xi1>
    %1760 = select %1759, %1756, %1755 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1761 = select %1759, %1755, %1756 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1762 = cat %1760, %1761 dim = 1 : tile<2x1x16xi32>, tile<2x1x16xi32> -> tile<2x2x16xi32>
    %1763 = reshape %1762 : tile<2x2x16xi32> -> tile<64xi32>
    %1764 = iota : tile<4xi32>
    %1765 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1766 = broadcast %1765 : tile<1xi32> -> tile<4xi32>
    %1767 = muli %1764, %1766 : tile<4xi32>
    %1768 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1769 = broadcast %1768 : tile<1xi32> -> tile<4xi32>
    %1770 = divi %1767, %1769 signed : tile<4xi32>
    %1771 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1772 = broadcast %1771 : tile<1xi32> -> tile<4xi32>
    %1773 = remi %1770, %1772 signed : tile<4xi32>
    %1774 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1775 = broadcast %1774 : tile<1xi32> -> tile<4xi32>
    %1776 = cmpi equal %1773, %1775, signed : tile<4xi32> -> tile<4xi1>
    %1777 = reshape %1776 : tile<4xi1> -> tile<4x1x1xi1>
    %1778 = reshape %1763 : tile<64xi32> -> tile<4x2x8xi32>
    %1779 = extract %1778[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1780 = extract %1778[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1781 = cmpi greater_than %1779, %1780, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1782 = broadcast %1777 : tile<4x1x1xi1> -> tile<4x1x8xi1>
    %1783 = xori %1781, %1782 : tile<4x1x8xi1>
    %1784 = select %1783, %1780, %1779 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1785 = select %1783, %1779, %1780 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1786 = cat %1784, %1785 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1787 = reshape %1786 : tile<4x2x8xi32> -> tile<64xi32>
    %1788 = iota : tile<8xi32>
    %1789 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1790 = broadcast %1789 : tile<1xi32> -> tile<8xi32>
    %1791 = muli %1788, %1790 : tile<8xi32>
    %1792 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1793 = broadcast %1792 : tile<1xi32> -> tile<8xi32>
    %1794 = divi %1791, %1793 signed : tile<8xi32>
    %1795 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1796 = broadcast %1795 : tile<1xi32> -> tile<8xi32>
    %1797 = remi %1794, %1796 signed : tile<8xi32>
    %1798 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1799 = broadcast %1798 : tile<1xi32> -> tile<8xi32>
    %1800 = cmpi equal %1797, %1799, signed : tile<8xi32> -> tile<8xi1>
    %1801 = reshape %1800 : tile<8xi1> -> tile<8x1x1xi1>
    %1802 = reshape %1787 : tile<64xi32> -> tile<8x2x4xi32>
    %1803 = extract %1802[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1804 = extract %1802[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1805 = cmpi greater_than %1803, %1804, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1806 = broadcast %1801 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1807 = xori %1805, %1806 : tile<8x1x4xi1>
    %1808 = select %1807, %1804, %1803 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1809 = select %1807, %1803, %1804 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1810 = cat %1808, %1809 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1811 = reshape %1810 : tile<8x2x4xi32> -> tile<64xi32>
    %1812 = iota : tile<16xi32>
    %1813 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1814 = broadcast %1813 : tile<1xi32> -> tile<16xi32>
    %1815 = muli %1812, %1814 : tile<16xi32>
    %1816 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1817 = broadcast %1816 : tile<1xi32> -> tile<16xi32>
    %1818 = divi %1815, %1817 signed : tile<16xi32>
    %1819 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1820 = broadcast %1819 : tile<1xi32> -> tile<16xi32>
    %1821 = remi %1818, %1820 signed : tile<16xi32>
    %1822 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1823 = broadcast %1822 : tile<1xi32> -> tile<16xi32>
    %1824 = cmpi equal %1821, %1823, signed : tile<16xi32> -> tile<16xi1>
    %1825 = reshape %1824 : tile<16xi1> -> tile<16x1x1xi1>
    %1826 = reshape %1811 : tile<64xi32> -> tile<16x2x2xi32>
    %1827 = extract %1826[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1828 = extract %1826[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1829 = cmpi greater_than %1827, %1828, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1830 = broadcast %1825 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1831 = xori %1829, %1830 : tile<16x1x2xi1>
    %1832 = select %1831, %1828, %1827 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1833 = select %1831, %1827, %1828 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1834 = cat %1832, %1833 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1835 = reshape %1834 : tile<16x2x2xi32> -> tile<64xi32>
    %1836 = iota : tile<32xi32>
    %1837 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1838 = broadcast %1837 : tile<1xi32> -> tile<32xi32>
    %1839 = muli %1836, %1838 : tile<32xi32>
    %1840 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1841 = broadcast %1840 : tile<1xi32> -> tile<32xi32>
    %1842 = divi %1839, %1841 signed : tile<32xi32>
    %1843 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1844 = broadcast %1843 : tile<1xi32> -> tile<32xi32>
    %1845 = remi %1842, %1844 signed : tile<32xi32>
    %1846 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1847 = broadcast %1846 : tile<1xi32> -> tile<32xi32>
    %1848 = cmpi equal %1845, %1847, signed : tile<32xi32> -> tile<32xi1>
    %1849 = reshape %1848 : tile<32xi1> -> tile<32x1x1xi1>
    %1850 = reshape %1835 : tile<64xi32> -> tile<32x2x1xi32>
    %1851 = extract %1850[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1852 = extract %1850[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1853 = cmpi greater_than %1851, %1852, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1854 = xori %1853, %1849 : tile<32x1x1xi1>
    %1855 = select %1854, %1852, %1851 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1856 = select %1854, %1851, %1852 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1857 = cat %1855, %1856 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1858 = reshape %1857 : tile<32x2x1xi32> -> tile<64xi32>
    %1859 = reshape %1858 : tile<64xi32> -> tile<1x2x32xi32>
    %1860 = extract %1859[%c_0, %c_0, %c_0] : tile<1x2x32xi32> -> tile<1x1x32xi32>
    %1861 = extract %1859[%c_0, %c_1, %c_0] : tile<1x2x32xi32> -> tile<1x1x32xi32>
    %1862 = cmpi greater_than %1860, %1861, signed : tile<1x1x32xi32> -> tile<1x1x32xi1>
    %1863 = select %1862, %1861, %1860 : tile<1x1x32xi1>, tile<1x1x32xi32>
    %1864 = select %1862, %1860, %1861 : tile<1x1x32xi1>, tile<1x1x32xi32>
    %1865 = cat %1863, %1864 dim = 1 : tile<1x1x32xi32>, tile<1x1x32xi32> -> tile<1x2x32xi32>
    %1866 = reshape %1865 : tile<1x2x32xi32> -> tile<64xi32>
    %1867 = reshape %1866 : tile<64xi32> -> tile<2x2x16xi32>
    %1868 = extract %1867[%c_0, %c_0, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1869 = extract %1867[%c_0, %c_1, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1870 = cmpi greater_than %1868, %1869, signed : tile<2x1x16xi32> -> tile<2x1x16xi1>
    %1871 = select %1870, %1869, %1868 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1872 = select %1870, %1868, %1869 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1873 = cat %1871, %1872 dim = 1 : tile<2x1x16xi32>, tile<2x1x16xi32> -> tile<2x2x16xi32>
    %1874 = reshape %1873 : tile<2x2x16xi32> -> tile<64xi32>
    %1875 = reshape %1874 : tile<64xi32> -> tile<4x2x8xi32>
    %1876 = extract %1875[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1877 = extract %1875[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1878 = cmpi greater_than %1876, %1877, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1879 = select %1878, %1877, %1876 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1880 = select %1878, %1876, %1877 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1881 = cat %1879, %1880 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1882 = reshape %1881 : tile<4x2x8xi32> -> tile<64xi32>
    %1883 = reshape %1882 : tile<64xi32> -> tile<8x2x4xi32>
    %1884 = extract %1883[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1885 = extract %1883[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1886 = cmpi greater_than %1884, %1885, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1887 = select %1886, %1885, %1884 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1888 = select %1886, %1884, %1885 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1889 = cat %1887, %1888 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1890 = reshape %1889 : tile<8x2x4xi32> -> tile<64xi32>
    %1891 = reshape %1890 : tile<64xi32> -> tile<16x2x2xi32>
    %1892 = extract %1891[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1893 = extract %1891[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1894 = cmpi greater_than %1892, %1893, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1895 = select %1894, %1893, %1892 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1896 = select %1894, %1892, %1893 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1897 = cat %1895, %1896 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1898 = reshape %1897 : tile<16x2x2xi32> -> tile<64xi32>
    %1899 = reshape %1898 : tile<64xi32> -> tile<32x2x1xi32>
    %1900 = extract %1899[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1901 = extract %1899[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1902 = cmpi greater_than %1900, %1901, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1903 = select %1902, %1901, %1900 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1904 = select %1902, %1900, %1901 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1905 = cat %1903, %1904 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %result_65 = reshape %1905 : tile<32x2x1xi32> -> tile<64xi32>
    %1906 = cmpf equal ordered %a, %a : tile<64xf32> -> tile<64xi1>
    %1907 = reshape %c_minus_inf : tile<f32> -> tile<1xf32>
    %1908 = broadcast %1907 : tile<1xf32> -> tile<64xf32>
    %1909 = select %1906, %a, %1908 : tile<64xi1>, tile<64xf32>
    %1910 = iota : tile<64xi32>
    %1911, %1912 = reduce %1909, %1910 dim=0 identities=[0xFF800000 : f32, 2147483647 : i32]
        : tile<64xf32>, tile<64xi32> -> tile<f32>, tile<i32>
        (%x_12: tile<f32>, %acc_11: tile<f32>, %x_13: tile<i32>, %acc_12: tile<i32>) {
      %1913 = cmpf greater_than ordered %x_12, %acc_11 : tile<f32> -> tile<i1>
      %1914 = cmpf equal ordered %x_12, %acc_11 : tile<f32> -> tile<i1>
      %1915 = cmpi less_than %x_13, %acc_12, signed : tile<i32> -> tile<i1>
      %1916 = andi %1914, %1915 : tile<i1>
      %1917 = ori %1913, %1916 : tile<i1>
      %1918 = select %1917, %x_12, %acc_11 : tile<i1>, tile<f32>
      %1919 = select %1917, %x_13, %acc_12 : tile<i1>, tile<i32>
      yield %1918, %1919 : tile<f32>, tile<i32>
    }
    %1920 = reshape %1912 : tile<i32> -> tile<1xi32>
    %result_66 = broadcast %1920 : tile<1xi32> -> tile<64xi32>
    %1921 = cmpf equal ordered %a, %a : tile<64xf32> -> tile<64xi1>
    %1922 = reshape %c_inf : tile<f32> -> tile<1xf32>
    %1923 = broadcast %1922 : tile<1xf32> -> tile<64xf32>
    %1924 = select %1921, %a, %1923 : tile<64xi1>, tile<64xf32>
    %1925 = iota : tile<64xi32>
    %1926, %1927 = reduce %1924, %1925 dim=0 identities=[0x7F800000 : f32, 2147483647 : i32]
        : tile<64xf32>, tile<64xi32> -> tile<f32>, tile<i32>
        (%x_14: tile<f32>, %acc_13: tile<f32>, %x_15: tile<i32>, %acc_14: tile<i32>) {
      %1928 = cmpf less_than ordered %x_14, %acc_13 : tile<f32> -> tile<i1>
      %1929 = cmpf equal ordered %x_14, %acc_13 : tile<f32> -> tile<i1>
      %1930 = cmpi less_than %x_15, %acc_14, signed : tile<i32> -> tile<i1>
      %1931 = andi %1929, %1930 : tile<i1>
      %1932 = ori %1928, %1931 : tile<i1>
      %1933 = select %1932, %x_14, %acc_13 : tile<i1>, tile<f32>
      %1934 = select %1932, %x_15, %acc_14 : tile<i1>, tile<i32>
      yield %1933, %1934 : tile<f32>, tile<i32>
    }
    %1935 = reshape %1927 : tile<i32> -> tile<1xi32>
    %result_67 = broadcast %1935 : tile<1xi32> -> tile<64xi32>
    %1936 = reduce %n dim=0 identities=[0 : i32] : tile<64xi32> -> tile<i32>
        (%x_16: tile<i32>, %acc_15: tile<i32>) {
      %1937 = xori %x_16, %acc_15 : tile<i32>
      yield %1937 : tile<i32>
    }
    %1938 = reshape %1936 : tile<i32> -> tile<1xi32>
    %result_68 = broadcast %1938 : tile<1xi32> -> tile<64xi32>
    %1939 = reduce %n dim=0 identities=[0 : i32] : tile<64xi32> -> tile<i32>
        (%x_17: tile<i32>, %acc_16: tile<i32>) {
      %1940 = addi %x_17, %acc_16 : tile<i32>
      yield %1940 : tile<i32>
    }
    %1941 = reshape %1939 : tile<i32> -> tile<1xi32>
    %result_69 = broadcast %1941 : tile<1xi32> -> tile<64xi32>
    %1942 = trunci %n : tile<64xi32> -> tile<64xi8>
    %result_70 = exti %1942 signed : tile<64xi8> -> tile<64xi32>
    %1943 = reshape %n : tile<64xi32> -> tile<64x1xi32>
    %1944 = iota : tile<64xi32>
    %1945 = reshape %1944 : tile<64xi32> -> tile<1x64xi32>
    %1946 = broadcast %1943 : tile<64x1xi32> -> tile<64x64xi32>
    %1947 = broadcast %1945 : tile<1x64xi32> -> tile<64x64xi32>
    %1948 = cmpi equal %1946, %1947, signed : tile<64x64xi32> -> tile<64x64xi1>
    %1949 = exti %1948 unsigned : tile<64x64xi1> -> tile<64x64xi32>
    %result_71 = reduce %1949 dim=0 identities=[0 : i32] : tile<64x64xi32> -> tile<64xi32>
        (%x_18: tile<i32>, %acc_17: tile<i32>) {
      %1950 = addi %x_18, %acc_17 : tile<i32>
      yield %1950 : tile<i32>
    }
    %1951 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1952 = broadcast %1951 : tile<1xi32> -> tile<64xi32>
    %1953 = addi %n, %1952 : tile<64xi32>
    %1954 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1955 = broadcast %1954 : tile<1xi32> -> tile<64xi32>
    %result_72 = divi %1953, %1955 signed : tile<64xi32>
    %1956 = trunci %n : tile<64xi32> -> tile<64xi8>
    %1957 = exti %1956 signed : tile<64xi8> -> tile<64xi32>
    %result_73 = scan %1957 dim=0 reverse=false identities=[0 : i32] : tile<64xi32> -> tile<64xi32>
        (%x_19: tile<i32>, %acc_18: tile<i32>) {
      %1958 = addi %x_19, %acc_18 : tile<i32>
      yield %1958 : tile<i32>
    }
    %1959 = offset %ints, %c_0 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1960 = reshape %1959 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1961 = broadcast %1960 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1962 = offset %1961, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_47 = store_ptr_tko weak %1962, %result_47 token = %wrote_46
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1963 = offset %ints, %c_64 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1964 = reshape %1963 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1965 = broadcast %1964 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1966 = offset %1965, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_48 = store_ptr_tko weak %1966, %result_48 token = %wrote_47
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1967 = offset %ints, %c_128 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1968 = reshape %1967 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1969 = broadcast %1968 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1970 = offset %1969, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_49 = store_ptr_tko weak %1970, %result_49 token = %wrote_48
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1971 = offset %ints, %c_192 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1972 = reshape %1971 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1973 = broadcast %1972 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1974 = offset %1973, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_50 = store_ptr_tko weak %1974, %result_50 token = %wrote_49
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1975 = offset %ints, %c_256 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1976 = reshape %1975 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1977 = broadcast %1976 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1978 = offset %1977, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_51 = store_ptr_tko weak %1978, %result_51 token = %wrote_50
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1979 = offset %ints, %c_320 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1980 = reshape %1979 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1981 = broadcast %1980 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1982 = offset %1981, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_52 = store_ptr_tko weak %1982, %result_52 token = %wrote_51
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1983 = offset %ints, %c_384 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1984 = reshape %1983 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1985 = broadcast %1984 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1986 = offset %1985, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_53 = store_ptr_tko weak %1986, %result_53 token = %wrote_52
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1987 = offset %ints, %c_448 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1988 = reshape %1987 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1989 = broadcast %1988 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1990 = offset %1989, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_54 = store_ptr_tko weak %1990, %result_54 token = %wrote_53
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1991 = offset %ints, %c_512 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1992 = reshape %1991 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1993 = broadcast %1992 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1994 = offset %1993, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_55 = store_ptr_tko weak %1994, %result_55 token = %wrote_54
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1995 = offset %ints, %c_576 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1996 = reshape %1995 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1997 = broadcast %1996 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1998 = offset %1997, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_56 = store_ptr_tko weak %1998, %result_56 token = %wrote_55
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1999 = offset %ints, %c_640 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2000 = reshape %1999 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2001 = broadcast %2000 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2002 = offset %2001, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_57 = store_ptr_tko weak %2002, %result_57 token = %wrote_56
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2003 = offset %ints, %c_704 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2004 = reshape %2003 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2005 = broadcast %2004 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2006 = offset %2005, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_58 = store_ptr_tko weak %2006, %result_58 token = %wrote_57
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2007 = offset %ints, %c_768 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2008 = reshape %2007 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2009 = broadcast %2008 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2010 = offset %2009, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_59 = store_ptr_tko weak %2010, %result_59 token = %wrote_58
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2011 = offset %ints, %c_832 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2012 = reshape %2011 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2013 = broadcast %2012 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2014 = offset %2013, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_60 = store_ptr_tko weak %2014, %result_60 token = %wrote_59
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2015 = offset %ints, %c_896 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2016 = reshape %2015 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2017 = broadcast %2016 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2018 = offset %2017, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_61 = store_ptr_tko weak %2018, %result_61 token = %wrote_60
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2019 = offset %ints, %c_960 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2020 = reshape %2019 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2021 = broadcast %2020 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2022 = offset %2021, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_62 = store_ptr_tko weak %2022, %result_62 token = %wrote_61
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2023 = offset %ints, %c_1024 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2024 = reshape %2023 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2025 = broadcast %2024 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2026 = offset %2025, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_63 = store_ptr_tko weak %2026, %result_63 token = %wrote_62
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2027 = offset %ints, %c_1088 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2028 = reshape %2027 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2029 = broadcast %2028 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2030 = offset %2029, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_64 = store_ptr_tko weak %2030, %result_64 token = %wrote_63
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2031 = offset %ints, %c_1152 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2032 = reshape %2031 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2033 = broadcast %2032 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2034 = offset %2033, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_65 = store_ptr_tko weak %2034, %result_65 token = %wrote_64
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2035 = offset %ints, %c_1216 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2036 = reshape %2035 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2037 = broadcast %2036 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2038 = offset %2037, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_66 = store_ptr_tko weak %2038, %result_66 token = %wrote_65
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2039 = offset %ints, %c_1280 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2040 = reshape %2039 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2041 = broadcast %2040 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2042 = offset %2041, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_67 = store_ptr_tko weak %2042, %result_67 token = %wrote_66
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2043 = offset %ints, %c_1344 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2044 = reshape %2043 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2045 = broadcast %2044 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2046 = offset %2045, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_68 = store_ptr_tko weak %2046, %result_68 token = %wrote_67
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2047 = offset %ints, %c_1408 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2048 = reshape %2047 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2049 = broadcast %2048 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2050 = offset %2049, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_69 = store_ptr_tko weak %2050, %result_69 token = %wrote_68
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2051 = offset %ints, %c_1472 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2052 = reshape %2051 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2053 = broadcast %2052 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2054 = offset %2053, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_70 = store_ptr_tko weak %2054, %result_70 token = %wrote_69
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2055 = offset %ints, %c_1536 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2056 = reshape %2055 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2057 = broadcast %2056 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2058 = offset %2057, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_71 = store_ptr_tko weak %2058, %result_71 token = %wrote_70
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2059 = offset %ints, %c_1600 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2060 = reshape %2059 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2061 = broadcast %2060 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2062 = offset %2061, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_72 = store_ptr_tko weak %2062, %result_72 token = %wrote_71
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2063 = offset %ints, %c_1664 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2064 = reshape %2063 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2065 = broadcast %2064 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2066 = offset %2065, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_73 = store_ptr_tko weak %2066, %result_73 token = %wrote_72
        : tile<64xptr<i32>>, tile<64xi32> -> token
    return
  }
}
