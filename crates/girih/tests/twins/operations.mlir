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
    %scratch = alloca num_elem = 64, alignment = 64 : tile<ptr<f32>>
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
    %542 = iota : tile<8xi32>
    %543 = reshape %542 : tile<8xi32> -> tile<1x8xi32>
    %544 = reshape %c_1 : tile<i32> -> tile<1x1xi32>
    %545 = broadcast %544 : tile<1x1xi32> -> tile<1x8xi32>
    %546 = muli %543, %545 : tile<1x8xi32>
    %547 = reshape %c_0 : tile<i32> -> tile<1x1xi32>
    %548 = broadcast %547 : tile<1x1xi32> -> tile<1x8xi32>
    %549 = addi %548, %546 : tile<1x8xi32>
    %550 = iota : tile<8xi32>
    %551 = reshape %550 : tile<8xi32> -> tile<8x1xi32>
    %552 = reshape %c_8 : tile<i32> -> tile<1x1xi32>
    %553 = broadcast %552 : tile<1x1xi32> -> tile<8x1xi32>
    %554 = muli %551, %553 : tile<8x1xi32>
    %555 = broadcast %549 : tile<1x8xi32> -> tile<8x8xi32>
    %556 = broadcast %554 : tile<8x1xi32> -> tile<8x8xi32>
    %557 = addi %555, %556 : tile<8x8xi32>
    %558 = reshape %scratch : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %559 = broadcast %558 : tile<1x1xptr<f32>> -> tile<8x8xptr<f32>>
    %560 = offset %559, %557 : tile<8x8xptr<f32>>, tile<8x8xi32> -> tile<8x8xptr<f32>>
    %joined = join_tokens %read, %read_1, %read_2 : token
    %wrote = store_ptr_tko weak %560, %square token = %joined
        : tile<8x8xptr<f32>>, tile<8x8xf32> -> token
    %561 = reshape %c_0 : tile<i32> -> tile<1x1xi32>
    %562 = broadcast %561 : tile<1x1xi32> -> tile<8x8xi32>
    %563 = cmpi greater_than_or_equal %541, %562, signed : tile<8x8xi32> -> tile<8x8xi1>
    %564 = reshape %c_8 : tile<i32> -> tile<1x1xi32>
    %565 = broadcast %564 : tile<1x1xi32> -> tile<8x8xi32>
    %566 = cmpi less_than %541, %565, signed : tile<8x8xi32> -> tile<8x8xi1>
    %567 = andi %563, %566 : tile<8x8xi1>
    %568 = reshape %c_1 : tile<i32> -> tile<1x1xi32>
    %569 = broadcast %568 : tile<1x1xi32> -> tile<8x8xi32>
    %570 = muli %541, %569 : tile<8x8xi32>
    %571 = reshape %c_0 : tile<i32> -> tile<1x1xi32>
    %572 = broadcast %571 : tile<1x1xi32> -> tile<8x8xi32>
    %573 = addi %572, %570 : tile<8x8xi32>
    %574 = iota : tile<8xi32>
    %575 = reshape %574 : tile<8xi32> -> tile<8x1xi32>
    %576 = reshape %c_8 : tile<i32> -> tile<1x1xi32>
    %577 = broadcast %576 : tile<1x1xi32> -> tile<8x1xi32>
    %578 = muli %575, %577 : tile<8x1xi32>
    %579 = broadcast %578 : tile<8x1xi32> -> tile<8x8xi32>
    %580 = addi %573, %579 : tile<8x8xi32>
    %581 = reshape %scratch : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %582 = broadcast %581 : tile<1x1xptr<f32>> -> tile<8x8xptr<f32>>
    %583 = offset %582, %580 : tile<8x8xptr<f32>>, tile<8x8xi32> -> tile<8x8xptr<f32>>
    %584, %read_3 = load_ptr_tko weak %583, %567, %c_0_1 token = %wrote
        : tile<8x8xptr<f32>>, tile<8x8xi1>, tile<8x8xf32> -> tile<8x8xf32>, token
    %result_38 = reshape %584 : tile<8x8xf32> -> tile<64xf32>
    %585 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %586 = broadcast %585 : tile<1xi32> -> tile<64xi32>
    %587 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %588 = broadcast %587 : tile<1xi32> -> tile<64xi32>
    %589 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %590 = broadcast %589 : tile<1xi32> -> tile<64xi32>
    %591 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %592 = broadcast %591 : tile<1xi32> -> tile<64xi32>
    %593 = mulhii %588, %592 : tile<64xi32>
    %594 = xori %593, %586 : tile<64xi32>
    %595 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %596 = broadcast %595 : tile<1xi32> -> tile<64xi32>
    %597 = xori %594, %596 : tile<64xi32>
    %598 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %599 = broadcast %598 : tile<1xi32> -> tile<64xi32>
    %600 = muli %588, %599 : tile<64xi32>
    %601 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %602 = broadcast %601 : tile<1xi32> -> tile<64xi32>
    %603 = mulhii %i, %602 : tile<64xi32>
    %604 = xori %603, %590 : tile<64xi32>
    %605 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %606 = broadcast %605 : tile<1xi32> -> tile<64xi32>
    %607 = xori %604, %606 : tile<64xi32>
    %608 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %609 = broadcast %608 : tile<1xi32> -> tile<64xi32>
    %610 = muli %i, %609 : tile<64xi32>
    %611 = addi %c_7, %c_2654435769 : tile<i32>
    %612 = addi %c_0_2, %c_3144134277 : tile<i32>
    %613 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %614 = broadcast %613 : tile<1xi32> -> tile<64xi32>
    %615 = mulhii %607, %614 : tile<64xi32>
    %616 = xori %615, %600 : tile<64xi32>
    %617 = reshape %611 : tile<i32> -> tile<1xi32>
    %618 = broadcast %617 : tile<1xi32> -> tile<64xi32>
    %619 = xori %616, %618 : tile<64xi32>
    %620 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %621 = broadcast %620 : tile<1xi32> -> tile<64xi32>
    %622 = muli %607, %621 : tile<64xi32>
    %623 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %624 = broadcast %623 : tile<1xi32> -> tile<64xi32>
    %625 = mulhii %597, %624 : tile<64xi32>
    %626 = xori %625, %610 : tile<64xi32>
    %627 = reshape %612 : tile<i32> -> tile<1xi32>
    %628 = broadcast %627 : tile<1xi32> -> tile<64xi32>
    %629 = xori %626, %628 : tile<64xi32>
    %630 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %631 = broadcast %630 : tile<1xi32> -> tile<64xi32>
    %632 = muli %597, %631 : tile<64xi32>
    %633 = addi %611, %c_2654435769 : tile<i32>
    %634 = addi %612, %c_3144134277 : tile<i32>
    %635 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %636 = broadcast %635 : tile<1xi32> -> tile<64xi32>
    %637 = mulhii %629, %636 : tile<64xi32>
    %638 = xori %637, %622 : tile<64xi32>
    %639 = reshape %633 : tile<i32> -> tile<1xi32>
    %640 = broadcast %639 : tile<1xi32> -> tile<64xi32>
    %641 = xori %638, %640 : tile<64xi32>
    %642 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %643 = broadcast %642 : tile<1xi32> -> tile<64xi32>
    %644 = muli %629, %643 : tile<64xi32>
    %645 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %646 = broadcast %645 : tile<1xi32> -> tile<64xi32>
    %647 = mulhii %619, %646 : tile<64xi32>
    %648 = xori %647, %632 : tile<64xi32>
    %649 = reshape %634 : tile<i32> -> tile<1xi32>
    %650 = broadcast %649 : tile<1xi32> -> tile<64xi32>
    %651 = xori %648, %650 : tile<64xi32>
    %652 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %653 = broadcast %652 : tile<1xi32> -> tile<64xi32>
    %654 = muli %619, %653 : tile<64xi32>
    %655 = addi %633, %c_2654435769 : tile<i32>
    %656 = addi %634, %c_3144134277 : tile<i32>
    %657 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %658 = broadcast %657 : tile<1xi32> -> tile<64xi32>
    %659 = mulhii %651, %658 : tile<64xi32>
    %660 = xori %659, %644 : tile<64xi32>
    %661 = reshape %655 : tile<i32> -> tile<1xi32>
    %662 = broadcast %661 : tile<1xi32> -> tile<64xi32>
    %663 = xori %660, %662 : tile<64xi32>
    %664 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %665 = broadcast %664 : tile<1xi32> -> tile<64xi32>
    %666 = muli %651, %665 : tile<64xi32>
    %667 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %668 = broadcast %667 : tile<1xi32> -> tile<64xi32>
    %669 = mulhii %641, %668 : tile<64xi32>
    %670 = xori %669, %654 : tile<64xi32>
    %671 = reshape %656 : tile<i32> -> tile<1xi32>
    %672 = broadcast %671 : tile<1xi32> -> tile<64xi32>
    %673 = xori %670, %672 : tile<64xi32>
    %674 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %675 = broadcast %674 : tile<1xi32> -> tile<64xi32>
    %676 = muli %641, %675 : tile<64xi32>
    %677 = addi %655, %c_2654435769 : tile<i32>
    %678 = addi %656, %c_3144134277 : tile<i32>
    %679 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %680 = broadcast %679 : tile<1xi32> -> tile<64xi32>
    %681 = mulhii %673, %680 : tile<64xi32>
    %682 = xori %681, %666 : tile<64xi32>
    %683 = reshape %677 : tile<i32> -> tile<1xi32>
    %684 = broadcast %683 : tile<1xi32> -> tile<64xi32>
    %685 = xori %682, %684 : tile<64xi32>
    %686 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %687 = broadcast %686 : tile<1xi32> -> tile<64xi32>
    %688 = muli %673, %687 : tile<64xi32>
    %689 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %690 = broadcast %689 : tile<1xi32> -> tile<64xi32>
    %691 = mulhii %663, %690 : tile<64xi32>
    %692 = xori %691, %676 : tile<64xi32>
    %693 = reshape %678 : tile<i32> -> tile<1xi32>
    %694 = broadcast %693 : tile<1xi32> -> tile<64xi32>
    %695 = xori %692, %694 : tile<64xi32>
    %696 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %697 = broadcast %696 : tile<1xi32> -> tile<64xi32>
    %698 = muli %663, %697 : tile<64xi32>
    %699 = addi %677, %c_2654435769 : tile<i32>
    %700 = addi %678, %c_3144134277 : tile<i32>
    %701 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %702 = broadcast %701 : tile<1xi32> -> tile<64xi32>
    %703 = mulhii %695, %702 : tile<64xi32>
    %704 = xori %703, %688 : tile<64xi32>
    %705 = reshape %699 : tile<i32> -> tile<1xi32>
    %706 = broadcast %705 : tile<1xi32> -> tile<64xi32>
    %707 = xori %704, %706 : tile<64xi32>
    %708 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %709 = broadcast %708 : tile<1xi32> -> tile<64xi32>
    %710 = muli %695, %709 : tile<64xi32>
    %711 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %712 = broadcast %711 : tile<1xi32> -> tile<64xi32>
    %713 = mulhii %685, %712 : tile<64xi32>
    %714 = xori %713, %698 : tile<64xi32>
    %715 = reshape %700 : tile<i32> -> tile<1xi32>
    %716 = broadcast %715 : tile<1xi32> -> tile<64xi32>
    %717 = xori %714, %716 : tile<64xi32>
    %718 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %719 = broadcast %718 : tile<1xi32> -> tile<64xi32>
    %720 = muli %685, %719 : tile<64xi32>
    %721 = addi %699, %c_2654435769 : tile<i32>
    %722 = addi %700, %c_3144134277 : tile<i32>
    %723 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %724 = broadcast %723 : tile<1xi32> -> tile<64xi32>
    %725 = mulhii %717, %724 : tile<64xi32>
    %726 = xori %725, %710 : tile<64xi32>
    %727 = reshape %721 : tile<i32> -> tile<1xi32>
    %728 = broadcast %727 : tile<1xi32> -> tile<64xi32>
    %729 = xori %726, %728 : tile<64xi32>
    %730 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %731 = broadcast %730 : tile<1xi32> -> tile<64xi32>
    %732 = muli %717, %731 : tile<64xi32>
    %733 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %734 = broadcast %733 : tile<1xi32> -> tile<64xi32>
    %735 = mulhii %707, %734 : tile<64xi32>
    %736 = xori %735, %720 : tile<64xi32>
    %737 = reshape %722 : tile<i32> -> tile<1xi32>
    %738 = broadcast %737 : tile<1xi32> -> tile<64xi32>
    %739 = xori %736, %738 : tile<64xi32>
    %740 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %741 = broadcast %740 : tile<1xi32> -> tile<64xi32>
    %742 = muli %707, %741 : tile<64xi32>
    %743 = addi %721, %c_2654435769 : tile<i32>
    %744 = addi %722, %c_3144134277 : tile<i32>
    %745 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %746 = broadcast %745 : tile<1xi32> -> tile<64xi32>
    %747 = mulhii %739, %746 : tile<64xi32>
    %748 = xori %747, %732 : tile<64xi32>
    %749 = reshape %743 : tile<i32> -> tile<1xi32>
    %750 = broadcast %749 : tile<1xi32> -> tile<64xi32>
    %751 = xori %748, %750 : tile<64xi32>
    %752 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %753 = broadcast %752 : tile<1xi32> -> tile<64xi32>
    %754 = mulhii %729, %753 : tile<64xi32>
    %755 = xori %754, %742 : tile<64xi32>
    %756 = reshape %744 : tile<i32> -> tile<1xi32>
    %757 = broadcast %756 : tile<1xi32> -> tile<64xi32>
    %758 = xori %755, %757 : tile<64xi32>
    %759 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %760 = broadcast %759 : tile<1xi32> -> tile<64xi32>
    %761 = muli %729, %760 : tile<64xi32>
    %762 = addi %743, %c_2654435769 : tile<i32>
    %763 = addi %744, %c_3144134277 : tile<i32>
    %764 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %765 = broadcast %764 : tile<1xi32> -> tile<64xi32>
    %766 = muli %758, %765 : tile<64xi32>
    %767 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %768 = broadcast %767 : tile<1xi32> -> tile<64xi32>
    %769 = mulhii %751, %768 : tile<64xi32>
    %770 = xori %769, %761 : tile<64xi32>
    %771 = reshape %763 : tile<i32> -> tile<1xi32>
    %772 = broadcast %771 : tile<1xi32> -> tile<64xi32>
    %773 = xori %770, %772 : tile<64xi32>
    %774 = addi %762, %c_2654435769 : tile<i32>
    %775 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %776 = broadcast %775 : tile<1xi32> -> tile<64xi32>
    %777 = mulhii %773, %776 : tile<64xi32>
    %778 = xori %777, %766 : tile<64xi32>
    %779 = reshape %774 : tile<i32> -> tile<1xi32>
    %780 = broadcast %779 : tile<1xi32> -> tile<64xi32>
    %781 = xori %778, %780 : tile<64xi32>
    %782 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %783 = broadcast %782 : tile<1xi32> -> tile<64xi32>
    %784 = cmpi less_than %781, %783, signed : tile<64xi32> -> tile<64xi1>
    %785 = negi %781 : tile<64xi32>
    %786 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %787 = broadcast %786 : tile<1xi32> -> tile<64xi32>
    %788 = subi %785, %787 : tile<64xi32>
    %789 = select %784, %788, %781 : tile<64xi1>, tile<64xi32>
    %790 = itof %789 signed : tile<64xi32> -> tile<64xf32>
    %791 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %792 = broadcast %791 : tile<1xf32> -> tile<64xf32>
    %result_39 = mulf %790, %792 : tile<64xf32>
    %793 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %794 = broadcast %793 : tile<1xi32> -> tile<64xi32>
    %795 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %796 = broadcast %795 : tile<1xi32> -> tile<64xi32>
    %797 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %798 = broadcast %797 : tile<1xi32> -> tile<64xi32>
    %799 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %800 = broadcast %799 : tile<1xi32> -> tile<64xi32>
    %801 = mulhii %796, %800 : tile<64xi32>
    %802 = xori %801, %794 : tile<64xi32>
    %803 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %804 = broadcast %803 : tile<1xi32> -> tile<64xi32>
    %805 = xori %802, %804 : tile<64xi32>
    %806 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %807 = broadcast %806 : tile<1xi32> -> tile<64xi32>
    %808 = muli %796, %807 : tile<64xi32>
    %809 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %810 = broadcast %809 : tile<1xi32> -> tile<64xi32>
    %811 = mulhii %i, %810 : tile<64xi32>
    %812 = xori %811, %798 : tile<64xi32>
    %813 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %814 = broadcast %813 : tile<1xi32> -> tile<64xi32>
    %815 = xori %812, %814 : tile<64xi32>
    %816 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %817 = broadcast %816 : tile<1xi32> -> tile<64xi32>
    %818 = muli %i, %817 : tile<64xi32>
    %819 = addi %c_7, %c_2654435769 : tile<i32>
    %820 = addi %c_0_2, %c_3144134277 : tile<i32>
    %821 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %822 = broadcast %821 : tile<1xi32> -> tile<64xi32>
    %823 = mulhii %815, %822 : tile<64xi32>
    %824 = xori %823, %808 : tile<64xi32>
    %825 = reshape %819 : tile<i32> -> tile<1xi32>
    %826 = broadcast %825 : tile<1xi32> -> tile<64xi32>
    %827 = xori %824, %826 : tile<64xi32>
    %828 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %829 = broadcast %828 : tile<1xi32> -> tile<64xi32>
    %830 = muli %815, %829 : tile<64xi32>
    %831 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %832 = broadcast %831 : tile<1xi32> -> tile<64xi32>
    %833 = mulhii %805, %832 : tile<64xi32>
    %834 = xori %833, %818 : tile<64xi32>
    %835 = reshape %820 : tile<i32> -> tile<1xi32>
    %836 = broadcast %835 : tile<1xi32> -> tile<64xi32>
    %837 = xori %834, %836 : tile<64xi32>
    %838 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %839 = broadcast %838 : tile<1xi32> -> tile<64xi32>
    %840 = muli %805, %839 : tile<64xi32>
    %841 = addi %819, %c_2654435769 : tile<i32>
    %842 = addi %820, %c_3144134277 : tile<i32>
    %843 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %844 = broadcast %843 : tile<1xi32> -> tile<64xi32>
    %845 = mulhii %837, %844 : tile<64xi32>
    %846 = xori %845, %830 : tile<64xi32>
    %847 = reshape %841 : tile<i32> -> tile<1xi32>
    %848 = broadcast %847 : tile<1xi32> -> tile<64xi32>
    %849 = xori %846, %848 : tile<64xi32>
    %850 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %851 = broadcast %850 : tile<1xi32> -> tile<64xi32>
    %852 = muli %837, %851 : tile<64xi32>
    %853 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %854 = broadcast %853 : tile<1xi32> -> tile<64xi32>
    %855 = mulhii %827, %854 : tile<64xi32>
    %856 = xori %855, %840 : tile<64xi32>
    %857 = reshape %842 : tile<i32> -> tile<1xi32>
    %858 = broadcast %857 : tile<1xi32> -> tile<64xi32>
    %859 = xori %856, %858 : tile<64xi32>
    %860 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %861 = broadcast %860 : tile<1xi32> -> tile<64xi32>
    %862 = muli %827, %861 : tile<64xi32>
    %863 = addi %841, %c_2654435769 : tile<i32>
    %864 = addi %842, %c_3144134277 : tile<i32>
    %865 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %866 = broadcast %865 : tile<1xi32> -> tile<64xi32>
    %867 = mulhii %859, %866 : tile<64xi32>
    %868 = xori %867, %852 : tile<64xi32>
    %869 = reshape %863 : tile<i32> -> tile<1xi32>
    %870 = broadcast %869 : tile<1xi32> -> tile<64xi32>
    %871 = xori %868, %870 : tile<64xi32>
    %872 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %873 = broadcast %872 : tile<1xi32> -> tile<64xi32>
    %874 = muli %859, %873 : tile<64xi32>
    %875 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %876 = broadcast %875 : tile<1xi32> -> tile<64xi32>
    %877 = mulhii %849, %876 : tile<64xi32>
    %878 = xori %877, %862 : tile<64xi32>
    %879 = reshape %864 : tile<i32> -> tile<1xi32>
    %880 = broadcast %879 : tile<1xi32> -> tile<64xi32>
    %881 = xori %878, %880 : tile<64xi32>
    %882 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %883 = broadcast %882 : tile<1xi32> -> tile<64xi32>
    %884 = muli %849, %883 : tile<64xi32>
    %885 = addi %863, %c_2654435769 : tile<i32>
    %886 = addi %864, %c_3144134277 : tile<i32>
    %887 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %888 = broadcast %887 : tile<1xi32> -> tile<64xi32>
    %889 = mulhii %881, %888 : tile<64xi32>
    %890 = xori %889, %874 : tile<64xi32>
    %891 = reshape %885 : tile<i32> -> tile<1xi32>
    %892 = broadcast %891 : tile<1xi32> -> tile<64xi32>
    %893 = xori %890, %892 : tile<64xi32>
    %894 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %895 = broadcast %894 : tile<1xi32> -> tile<64xi32>
    %896 = muli %881, %895 : tile<64xi32>
    %897 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %898 = broadcast %897 : tile<1xi32> -> tile<64xi32>
    %899 = mulhii %871, %898 : tile<64xi32>
    %900 = xori %899, %884 : tile<64xi32>
    %901 = reshape %886 : tile<i32> -> tile<1xi32>
    %902 = broadcast %901 : tile<1xi32> -> tile<64xi32>
    %903 = xori %900, %902 : tile<64xi32>
    %904 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %905 = broadcast %904 : tile<1xi32> -> tile<64xi32>
    %906 = muli %871, %905 : tile<64xi32>
    %907 = addi %885, %c_2654435769 : tile<i32>
    %908 = addi %886, %c_3144134277 : tile<i32>
    %909 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %910 = broadcast %909 : tile<1xi32> -> tile<64xi32>
    %911 = mulhii %903, %910 : tile<64xi32>
    %912 = xori %911, %896 : tile<64xi32>
    %913 = reshape %907 : tile<i32> -> tile<1xi32>
    %914 = broadcast %913 : tile<1xi32> -> tile<64xi32>
    %915 = xori %912, %914 : tile<64xi32>
    %916 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %917 = broadcast %916 : tile<1xi32> -> tile<64xi32>
    %918 = muli %903, %917 : tile<64xi32>
    %919 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %920 = broadcast %919 : tile<1xi32> -> tile<64xi32>
    %921 = mulhii %893, %920 : tile<64xi32>
    %922 = xori %921, %906 : tile<64xi32>
    %923 = reshape %908 : tile<i32> -> tile<1xi32>
    %924 = broadcast %923 : tile<1xi32> -> tile<64xi32>
    %925 = xori %922, %924 : tile<64xi32>
    %926 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %927 = broadcast %926 : tile<1xi32> -> tile<64xi32>
    %928 = muli %893, %927 : tile<64xi32>
    %929 = addi %907, %c_2654435769 : tile<i32>
    %930 = addi %908, %c_3144134277 : tile<i32>
    %931 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %932 = broadcast %931 : tile<1xi32> -> tile<64xi32>
    %933 = mulhii %925, %932 : tile<64xi32>
    %934 = xori %933, %918 : tile<64xi32>
    %935 = reshape %929 : tile<i32> -> tile<1xi32>
    %936 = broadcast %935 : tile<1xi32> -> tile<64xi32>
    %937 = xori %934, %936 : tile<64xi32>
    %938 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %939 = broadcast %938 : tile<1xi32> -> tile<64xi32>
    %940 = muli %925, %939 : tile<64xi32>
    %941 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %942 = broadcast %941 : tile<1xi32> -> tile<64xi32>
    %943 = mulhii %915, %942 : tile<64xi32>
    %944 = xori %943, %928 : tile<64xi32>
    %945 = reshape %930 : tile<i32> -> tile<1xi32>
    %946 = broadcast %945 : tile<1xi32> -> tile<64xi32>
    %947 = xori %944, %946 : tile<64xi32>
    %948 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %949 = broadcast %948 : tile<1xi32> -> tile<64xi32>
    %950 = muli %915, %949 : tile<64xi32>
    %951 = addi %929, %c_2654435769 : tile<i32>
    %952 = addi %930, %c_3144134277 : tile<i32>
    %953 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %954 = broadcast %953 : tile<1xi32> -> tile<64xi32>
    %955 = mulhii %947, %954 : tile<64xi32>
    %956 = xori %955, %940 : tile<64xi32>
    %957 = reshape %951 : tile<i32> -> tile<1xi32>
    %958 = broadcast %957 : tile<1xi32> -> tile<64xi32>
    %959 = xori %956, %958 : tile<64xi32>
    %960 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %961 = broadcast %960 : tile<1xi32> -> tile<64xi32>
    %962 = mulhii %937, %961 : tile<64xi32>
    %963 = xori %962, %950 : tile<64xi32>
    %964 = reshape %952 : tile<i32> -> tile<1xi32>
    %965 = broadcast %964 : tile<1xi32> -> tile<64xi32>
    %966 = xori %963, %965 : tile<64xi32>
    %967 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %968 = broadcast %967 : tile<1xi32> -> tile<64xi32>
    %969 = muli %937, %968 : tile<64xi32>
    %970 = addi %951, %c_2654435769 : tile<i32>
    %971 = addi %952, %c_3144134277 : tile<i32>
    %972 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %973 = broadcast %972 : tile<1xi32> -> tile<64xi32>
    %974 = muli %966, %973 : tile<64xi32>
    %975 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %976 = broadcast %975 : tile<1xi32> -> tile<64xi32>
    %977 = mulhii %959, %976 : tile<64xi32>
    %978 = xori %977, %969 : tile<64xi32>
    %979 = reshape %971 : tile<i32> -> tile<1xi32>
    %980 = broadcast %979 : tile<1xi32> -> tile<64xi32>
    %981 = xori %978, %980 : tile<64xi32>
    %982 = addi %970, %c_2654435769 : tile<i32>
    %983 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %984 = broadcast %983 : tile<1xi32> -> tile<64xi32>
    %985 = mulhii %981, %984 : tile<64xi32>
    %986 = xori %985, %974 : tile<64xi32>
    %987 = reshape %982 : tile<i32> -> tile<1xi32>
    %988 = broadcast %987 : tile<1xi32> -> tile<64xi32>
    %989 = xori %986, %988 : tile<64xi32>
    %990 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %991 = broadcast %990 : tile<1xi32> -> tile<64xi32>
    %992 = muli %981, %991 : tile<64xi32>
    %993 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %994 = broadcast %993 : tile<1xi32> -> tile<64xi32>
    %995 = cmpi less_than %989, %994, signed : tile<64xi32> -> tile<64xi1>
    %996 = negi %989 : tile<64xi32>
    %997 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %998 = broadcast %997 : tile<1xi32> -> tile<64xi32>
    %999 = subi %996, %998 : tile<64xi32>
    %1000 = select %995, %999, %989 : tile<64xi1>, tile<64xi32>
    %1001 = itof %1000 signed : tile<64xi32> -> tile<64xf32>
    %1002 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %1003 = broadcast %1002 : tile<1xf32> -> tile<64xf32>
    %1004 = mulf %1001, %1003 : tile<64xf32>
    %1005 = reshape %c_0 : tile<i32> -> tile<1xi32>
    %1006 = broadcast %1005 : tile<1xi32> -> tile<64xi32>
    %1007 = cmpi less_than %992, %1006, signed : tile<64xi32> -> tile<64xi1>
    %1008 = negi %992 : tile<64xi32>
    %1009 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1010 = broadcast %1009 : tile<1xi32> -> tile<64xi32>
    %1011 = subi %1008, %1010 : tile<64xi32>
    %1012 = select %1007, %1011, %992 : tile<64xi1>, tile<64xi32>
    %1013 = itof %1012 signed : tile<64xi32> -> tile<64xf32>
    %1014 = reshape %c_4_6566127342eminus_10 : tile<f32> -> tile<1xf32>
    %1015 = broadcast %1014 : tile<1xf32> -> tile<64xf32>
    %1016 = mulf %1013, %1015 : tile<64xf32>
    %1017 = reshape %c_1eminus_07 : tile<f32> -> tile<1xf32>
    %1018 = broadcast %1017 : tile<1xf32> -> tile<64xf32>
    %1019 = maxf %1004, %1018 : tile<64xf32>
    %1020 = log %1019 : tile<64xf32>
    %1021 = reshape %c_minus_2_0 : tile<f32> -> tile<1xf32>
    %1022 = broadcast %1021 : tile<1xf32> -> tile<64xf32>
    %1023 = mulf %1022, %1020 : tile<64xf32>
    %1024 = sqrt %1023 : tile<64xf32>
    %1025 = reshape %c_6_283185307179586 : tile<f32> -> tile<1xf32>
    %1026 = broadcast %1025 : tile<1xf32> -> tile<64xf32>
    %1027 = mulf %1026, %1016 : tile<64xf32>
    %1028 = cos %1027 : tile<64xf32>
    %result_40 = mulf %1024, %1028 : tile<64xf32>
    %1029 = reshape %a : tile<64xf32> -> tile<32x2xf32>
    %1030 = reduce %1029 dim=1 identities=[0.0 : f32] : tile<32x2xf32> -> tile<32xf32>
        (%x_5: tile<f32>, %acc_4: tile<f32>) {
      %1031 = addf %x_5, %acc_4 : tile<f32>
      yield %1031 : tile<f32>
    }
    %1032 = reshape %b : tile<64xf32> -> tile<32x2xf32>
    %1033 = reduce %1032 dim=1 identities=[0xFF800000 : f32] : tile<32x2xf32> -> tile<32xf32>
        (%x_6: tile<f32>, %acc_5: tile<f32>) {
      %1034 = maxf %x_6, %acc_5 : tile<f32>
      yield %1034 : tile<f32>
    }
    %1035 = reshape %1030 : tile<32xf32> -> tile<32x1xf32>
    %1036 = reshape %1033 : tile<32xf32> -> tile<32x1xf32>
    %1037 = cat %1035, %1036 dim = 1 : tile<32x1xf32>, tile<32x1xf32> -> tile<32x2xf32>
    %result_41 = reshape %1037 : tile<32x2xf32> -> tile<64xf32>
    %1038 = reduce %a dim=0 identities=[0.0 : f32] : tile<64xf32> -> tile<f32>
        (%x_7: tile<f32>, %acc_6: tile<f32>) {
      %1039 = addf %x_7, %acc_6 : tile<f32>
      yield %1039 : tile<f32>
    }
    %1040 = reshape %1038 : tile<f32> -> tile<1xf32>
    %result_42 = broadcast %1040 : tile<1xf32> -> tile<64xf32>
    %1041 = reduce %a dim=0 identities=[1.0 : f32] : tile<64xf32> -> tile<f32>
        (%x_8: tile<f32>, %acc_7: tile<f32>) {
      %1042 = mulf %x_8, %acc_7 : tile<f32>
      yield %1042 : tile<f32>
    }
    %1043 = reshape %1041 : tile<f32> -> tile<1xf32>
    %result_43 = broadcast %1043 : tile<1xf32> -> tile<64xf32>
    %1044 = reduce %a dim=0 identities=[0x7F800000 : f32] : tile<64xf32> -> tile<f32>
        (%x_9: tile<f32>, %acc_8: tile<f32>) {
      %1045 = minf %x_9, %acc_8 : tile<f32>
      yield %1045 : tile<f32>
    }
    %1046 = reshape %1044 : tile<f32> -> tile<1xf32>
    %result_44 = broadcast %1046 : tile<1xf32> -> tile<64xf32>
    %1047 = reshape %a : tile<64xf32> -> tile<32x2x1xf32>
    %1048 = extract %1047[%c_0, %c_0, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %1049 = extract %1047[%c_0, %c_1, %c_0] : tile<32x2x1xf32> -> tile<32x1x1xf32>
    %1050 = extract %1048[%c_0, %c_0, %c_0] : tile<32x1x1xf32> -> tile<32x1x1xf32>
    %1051 = cmpf greater_than ordered %1050, %1049 : tile<32x1x1xf32> -> tile<32x1x1xi1>
    %1052 = select %1051, %1050, %1049 : tile<32x1x1xi1>, tile<32x1x1xf32>
    %1053 = cat %1048, %1052 dim = 1 : tile<32x1x1xf32>, tile<32x1x1xf32> -> tile<32x2x1xf32>
    %1054 = reshape %1053 : tile<32x2x1xf32> -> tile<64xf32>
    %1055 = reshape %1054 : tile<64xf32> -> tile<16x2x2xf32>
    %1056 = extract %1055[%c_0, %c_0, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %1057 = extract %1055[%c_0, %c_1, %c_0] : tile<16x2x2xf32> -> tile<16x1x2xf32>
    %1058 = extract %1056[%c_0, %c_0, %c_1] : tile<16x1x2xf32> -> tile<16x1x1xf32>
    %1059 = broadcast %1058 : tile<16x1x1xf32> -> tile<16x1x2xf32>
    %1060 = cmpf greater_than ordered %1059, %1057 : tile<16x1x2xf32> -> tile<16x1x2xi1>
    %1061 = select %1060, %1059, %1057 : tile<16x1x2xi1>, tile<16x1x2xf32>
    %1062 = cat %1056, %1061 dim = 1 : tile<16x1x2xf32>, tile<16x1x2xf32> -> tile<16x2x2xf32>
    %1063 = reshape %1062 : tile<16x2x2xf32> -> tile<64xf32>
    %1064 = reshape %1063 : tile<64xf32> -> tile<8x2x4xf32>
    %1065 = extract %1064[%c_0, %c_0, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %1066 = extract %1064[%c_0, %c_1, %c_0] : tile<8x2x4xf32> -> tile<8x1x4xf32>
    %1067 = extract %1065[%c_0, %c_0, %c_3] : tile<8x1x4xf32> -> tile<8x1x1xf32>
    %1068 = broadcast %1067 : tile<8x1x1xf32> -> tile<8x1x4xf32>
    %1069 = cmpf greater_than ordered %1068, %1066 : tile<8x1x4xf32> -> tile<8x1x4xi1>
    %1070 = select %1069, %1068, %1066 : tile<8x1x4xi1>, tile<8x1x4xf32>
    %1071 = cat %1065, %1070 dim = 1 : tile<8x1x4xf32>, tile<8x1x4xf32> -> tile<8x2x4xf32>
    %1072 = reshape %1071 : tile<8x2x4xf32> -> tile<64xf32>
    %1073 = reshape %1072 : tile<64xf32> -> tile<4x2x8xf32>
    %1074 = extract %1073[%c_0, %c_0, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %1075 = extract %1073[%c_0, %c_1, %c_0] : tile<4x2x8xf32> -> tile<4x1x8xf32>
    %1076 = extract %1074[%c_0, %c_0, %c_7_1] : tile<4x1x8xf32> -> tile<4x1x1xf32>
    %1077 = broadcast %1076 : tile<4x1x1xf32> -> tile<4x1x8xf32>
    %1078 = cmpf greater_than ordered %1077, %1075 : tile<4x1x8xf32> -> tile<4x1x8xi1>
    %1079 = select %1078, %1077, %1075 : tile<4x1x8xi1>, tile<4x1x8xf32>
    %1080 = cat %1074, %1079 dim = 1 : tile<4x1x8xf32>, tile<4x1x8xf32> -> tile<4x2x8xf32>
    %1081 = reshape %1080 : tile<4x2x8xf32> -> tile<64xf32>
    %1082 = reshape %1081 : tile<64xf32> -> tile<2x2x16xf32>
    %1083 = extract %1082[%c_0, %c_0, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %1084 = extract %1082[%c_0, %c_1, %c_0] : tile<2x2x16xf32> -> tile<2x1x16xf32>
    %1085 = extract %1083[%c_0, %c_0, %c_15] : tile<2x1x16xf32> -> tile<2x1x1xf32>
    %1086 = broadcast %1085 : tile<2x1x1xf32> -> tile<2x1x16xf32>
    %1087 = cmpf greater_than ordered %1086, %1084 : tile<2x1x16xf32> -> tile<2x1x16xi1>
    %1088 = select %1087, %1086, %1084 : tile<2x1x16xi1>, tile<2x1x16xf32>
    %1089 = cat %1083, %1088 dim = 1 : tile<2x1x16xf32>, tile<2x1x16xf32> -> tile<2x2x16xf32>
    %1090 = reshape %1089 : tile<2x2x16xf32> -> tile<64xf32>
    %1091 = reshape %1090 : tile<64xf32> -> tile<1x2x32xf32>
    %1092 = extract %1091[%c_0, %c_0, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %1093 = extract %1091[%c_0, %c_1, %c_0] : tile<1x2x32xf32> -> tile<1x1x32xf32>
    %1094 = extract %1092[%c_0, %c_0, %c_31] : tile<1x1x32xf32> -> tile<1x1x1xf32>
    %1095 = broadcast %1094 : tile<1x1x1xf32> -> tile<1x1x32xf32>
    %1096 = cmpf greater_than ordered %1095, %1093 : tile<1x1x32xf32> -> tile<1x1x32xi1>
    %1097 = select %1096, %1095, %1093 : tile<1x1x32xi1>, tile<1x1x32xf32>
    %1098 = cat %1092, %1097 dim = 1 : tile<1x1x32xf32>, tile<1x1x32xf32> -> tile<1x2x32xf32>
    %result_45 = reshape %1098 : tile<1x2x32xf32> -> tile<64xf32>
    %1099 = extract %a[%c_0] : tile<64xf32> -> tile<32xf32>
    %1100 = extract %a[%c_1] : tile<64xf32> -> tile<32xf32>
    %1101 = cmpf greater_than ordered %1099, %1100 : tile<32xf32> -> tile<32xi1>
    %1102 = select %1101, %1099, %1100 : tile<32xi1>, tile<32xf32>
    %1103 = extract %1102[%c_0] : tile<32xf32> -> tile<16xf32>
    %1104 = extract %1102[%c_1] : tile<32xf32> -> tile<16xf32>
    %1105 = cmpf greater_than ordered %1103, %1104 : tile<16xf32> -> tile<16xi1>
    %1106 = select %1105, %1103, %1104 : tile<16xi1>, tile<16xf32>
    %1107 = extract %1106[%c_0] : tile<16xf32> -> tile<8xf32>
    %1108 = extract %1106[%c_1] : tile<16xf32> -> tile<8xf32>
    %1109 = cmpf greater_than ordered %1107, %1108 : tile<8xf32> -> tile<8xi1>
    %1110 = select %1109, %1107, %1108 : tile<8xi1>, tile<8xf32>
    %1111 = extract %1110[%c_0] : tile<8xf32> -> tile<4xf32>
    %1112 = extract %1110[%c_1] : tile<8xf32> -> tile<4xf32>
    %1113 = cmpf greater_than ordered %1111, %1112 : tile<4xf32> -> tile<4xi1>
    %1114 = select %1113, %1111, %1112 : tile<4xi1>, tile<4xf32>
    %1115 = extract %1114[%c_0] : tile<4xf32> -> tile<2xf32>
    %1116 = extract %1114[%c_1] : tile<4xf32> -> tile<2xf32>
    %1117 = cmpf greater_than ordered %1115, %1116 : tile<2xf32> -> tile<2xi1>
    %1118 = select %1117, %1115, %1116 : tile<2xi1>, tile<2xf32>
    %1119 = extract %1118[%c_0] : tile<2xf32> -> tile<1xf32>
    %1120 = extract %1118[%c_1] : tile<2xf32> -> tile<1xf32>
    %1121 = cmpf greater_than ordered %1119, %1120 : tile<1xf32> -> tile<1xi1>
    %1122 = select %1121, %1119, %1120 : tile<1xi1>, tile<1xf32>
    %1123 = reshape %1122 : tile<1xf32> -> tile<f32>
    %1124 = reshape %1123 : tile<f32> -> tile<1xf32>
    %result_46 = broadcast %1124 : tile<1xf32> -> tile<64xf32>
    %1125 = offset %floats, %c_0 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1126 = reshape %1125 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1127 = broadcast %1126 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1128 = offset %1127, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_1 = store_ptr_tko weak %1128, %result token = %read_3
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1129 = offset %floats, %c_64 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1130 = reshape %1129 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1131 = broadcast %1130 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1132 = offset %1131, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_2 = store_ptr_tko weak %1132, %result_1 token = %wrote_1
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1133 = offset %floats, %c_128 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1134 = reshape %1133 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1135 = broadcast %1134 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1136 = offset %1135, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_3 = store_ptr_tko weak %1136, %result_2 token = %wrote_2
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1137 = offset %floats, %c_192 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1138 = reshape %1137 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1139 = broadcast %1138 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1140 = offset %1139, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_4 = store_ptr_tko weak %1140, %result_3 token = %wrote_3
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1141 = offset %floats, %c_256 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1142 = reshape %1141 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1143 = broadcast %1142 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1144 = offset %1143, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_5 = store_ptr_tko weak %1144, %result_4 token = %wrote_4
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1145 = offset %floats, %c_320 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1146 = reshape %1145 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1147 = broadcast %1146 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1148 = offset %1147, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_6 = store_ptr_tko weak %1148, %result_5 token = %wrote_5
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1149 = offset %floats, %c_384 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1150 = reshape %1149 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1151 = broadcast %1150 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1152 = offset %1151, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_7 = store_ptr_tko weak %1152, %result_6 token = %wrote_6
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1153 = offset %floats, %c_448 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1154 = reshape %1153 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1155 = broadcast %1154 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1156 = offset %1155, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_8 = store_ptr_tko weak %1156, %result_7 token = %wrote_7
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1157 = offset %floats, %c_512 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1158 = reshape %1157 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1159 = broadcast %1158 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1160 = offset %1159, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_9 = store_ptr_tko weak %1160, %result_8 token = %wrote_8
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1161 = offset %floats, %c_576 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1162 = reshape %1161 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1163 = broadcast %1162 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1164 = offset %1163, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_10 = store_ptr_tko weak %1164, %result_9 token = %wrote_9
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1165 = offset %floats, %c_640 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1166 = reshape %1165 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1167 = broadcast %1166 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1168 = offset %1167, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_11 = store_ptr_tko weak %1168, %result_10 token = %wrote_10
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1169 = offset %floats, %c_704 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1170 = reshape %1169 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1171 = broadcast %1170 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1172 = offset %1171, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_12 = store_ptr_tko weak %1172, %result_11 token = %wrote_11
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1173 = offset %floats, %c_768 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1174 = reshape %1173 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1175 = broadcast %1174 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1176 = offset %1175, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_13 = store_ptr_tko weak %1176, %result_12 token = %wrote_12
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1177 = offset %floats, %c_832 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1178 = reshape %1177 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1179 = broadcast %1178 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1180 = offset %1179, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_14 = store_ptr_tko weak %1180, %result_13 token = %wrote_13
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1181 = offset %floats, %c_896 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1182 = reshape %1181 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1183 = broadcast %1182 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1184 = offset %1183, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_15 = store_ptr_tko weak %1184, %result_14 token = %wrote_14
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1185 = offset %floats, %c_960 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1186 = reshape %1185 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1187 = broadcast %1186 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1188 = offset %1187, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_16 = store_ptr_tko weak %1188, %result_15 token = %wrote_15
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1189 = offset %floats, %c_1024 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1190 = reshape %1189 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1191 = broadcast %1190 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1192 = offset %1191, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_17 = store_ptr_tko weak %1192, %result_16 token = %wrote_16
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1193 = offset %floats, %c_1088 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1194 = reshape %1193 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1195 = broadcast %1194 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1196 = offset %1195, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_18 = store_ptr_tko weak %1196, %result_17 token = %wrote_17
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1197 = offset %floats, %c_1152 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1198 = reshape %1197 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1199 = broadcast %1198 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1200 = offset %1199, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_19 = store_ptr_tko weak %1200, %result_18 token = %wrote_18
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1201 = offset %floats, %c_1216 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1202 = reshape %1201 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1203 = broadcast %1202 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1204 = offset %1203, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_20 = store_ptr_tko weak %1204, %result_19 token = %wrote_19
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1205 = offset %floats, %c_1280 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1206 = reshape %1205 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1207 = broadcast %1206 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1208 = offset %1207, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_21 = store_ptr_tko weak %1208, %result_20 token = %wrote_20
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1209 = offset %floats, %c_1344 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1210 = reshape %1209 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1211 = broadcast %1210 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1212 = offset %1211, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_22 = store_ptr_tko weak %1212, %result_21 token = %wrote_21
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1213 = offset %floats, %c_1408 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1214 = reshape %1213 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1215 = broadcast %1214 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1216 = offset %1215, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_23 = store_ptr_tko weak %1216, %result_22 token = %wrote_22
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1217 = offset %floats, %c_1472 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1218 = reshape %1217 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1219 = broadcast %1218 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1220 = offset %1219, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_24 = store_ptr_tko weak %1220, %result_23 token = %wrote_23
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1221 = offset %floats, %c_1536 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1222 = reshape %1221 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1223 = broadcast %1222 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1224 = offset %1223, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_25 = store_ptr_tko weak %1224, %result_24 token = %wrote_24
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1225 = offset %floats, %c_1600 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1226 = reshape %1225 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1227 = broadcast %1226 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1228 = offset %1227, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_26 = store_ptr_tko weak %1228, %result_25 token = %wrote_25
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1229 = offset %floats, %c_1664 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1230 = reshape %1229 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1231 = broadcast %1230 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1232 = offset %1231, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_27 = store_ptr_tko weak %1232, %result_26 token = %wrote_26
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1233 = offset %floats, %c_1728 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1234 = reshape %1233 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1235 = broadcast %1234 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1236 = offset %1235, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_28 = store_ptr_tko weak %1236, %result_27 token = %wrote_27
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1237 = offset %floats, %c_1792 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1238 = reshape %1237 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1239 = broadcast %1238 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1240 = offset %1239, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_29 = store_ptr_tko weak %1240, %result_28 token = %wrote_28
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1241 = offset %floats, %c_1856 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1242 = reshape %1241 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1243 = broadcast %1242 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1244 = offset %1243, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_30 = store_ptr_tko weak %1244, %result_29 token = %wrote_29
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1245 = offset %floats, %c_1920 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1246 = reshape %1245 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1247 = broadcast %1246 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1248 = offset %1247, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_31 = store_ptr_tko weak %1248, %result_30 token = %wrote_30
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1249 = offset %floats, %c_1984 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1250 = reshape %1249 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1251 = broadcast %1250 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1252 = offset %1251, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_32 = store_ptr_tko weak %1252, %result_31 token = %wrote_31
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1253 = offset %floats, %c_2048 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1254 = reshape %1253 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1255 = broadcast %1254 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1256 = offset %1255, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_33 = store_ptr_tko weak %1256, %result_32 token = %wrote_32
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1257 = offset %floats, %c_2112 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1258 = reshape %1257 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1259 = broadcast %1258 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1260 = offset %1259, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_34 = store_ptr_tko weak %1260, %result_33 token = %wrote_33
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1261 = offset %floats, %c_2176 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1262 = reshape %1261 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1263 = broadcast %1262 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1264 = offset %1263, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_35 = store_ptr_tko weak %1264, %result_34 token = %wrote_34
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1265 = offset %floats, %c_2240 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1266 = reshape %1265 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1267 = broadcast %1266 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1268 = offset %1267, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_36 = store_ptr_tko weak %1268, %result_35 token = %wrote_35
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1269 = offset %floats, %c_2304 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1270 = reshape %1269 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1271 = broadcast %1270 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1272 = offset %1271, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_37 = store_ptr_tko weak %1272, %result_36 token = %wrote_36
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1273 = offset %floats, %c_2368 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1274 = reshape %1273 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1275 = broadcast %1274 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1276 = offset %1275, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_38 = store_ptr_tko weak %1276, %result_37 token = %wrote_37
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1277 = offset %floats, %c_2432 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1278 = reshape %1277 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1279 = broadcast %1278 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1280 = offset %1279, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_39 = store_ptr_tko weak %1280, %result_38 token = %wrote_38
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1281 = offset %floats, %c_2496 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1282 = reshape %1281 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1283 = broadcast %1282 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1284 = offset %1283, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_40 = store_ptr_tko weak %1284, %result_39 token = %wrote_39
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1285 = offset %floats, %c_2560 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1286 = reshape %1285 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1287 = broadcast %1286 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1288 = offset %1287, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_41 = store_ptr_tko weak %1288, %result_40 token = %wrote_40
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1289 = offset %floats, %c_2624 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1290 = reshape %1289 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1291 = broadcast %1290 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1292 = offset %1291, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_42 = store_ptr_tko weak %1292, %result_41 token = %wrote_41
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1293 = offset %floats, %c_2688 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1294 = reshape %1293 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1295 = broadcast %1294 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1296 = offset %1295, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_43 = store_ptr_tko weak %1296, %result_42 token = %wrote_42
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1297 = offset %floats, %c_2752 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1298 = reshape %1297 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1299 = broadcast %1298 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1300 = offset %1299, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_44 = store_ptr_tko weak %1300, %result_43 token = %wrote_43
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1301 = offset %floats, %c_2816 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1302 = reshape %1301 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1303 = broadcast %1302 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1304 = offset %1303, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_45 = store_ptr_tko weak %1304, %result_44 token = %wrote_44
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1305 = offset %floats, %c_2880 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1306 = reshape %1305 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1307 = broadcast %1306 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1308 = offset %1307, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_46 = store_ptr_tko weak %1308, %result_45 token = %wrote_45
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1309 = offset %floats, %c_2944 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %1310 = reshape %1309 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %1311 = broadcast %1310 : tile<1xptr<f32>> -> tile<64xptr<f32>>
    %1312 = offset %1311, %i : tile<64xptr<f32>>, tile<64xi32> -> tile<64xptr<f32>>
    %wrote_47 = store_ptr_tko weak %1312, %result_46 token = %wrote_46
        : tile<64xptr<f32>>, tile<64xf32> -> token
    %1313 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1314 = broadcast %1313 : tile<1xi32> -> tile<64xi32>
    %result_47 = addi %n, %1314 : tile<64xi32>
    %1315 = muli %n, %n : tile<64xi32>
    %result_48 = subi %n, %1315 : tile<64xi32>
    %1316 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1317 = broadcast %1316 : tile<1xi32> -> tile<64xi32>
    %result_49 = divi %n, %1317 signed : tile<64xi32>
    %1318 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1319 = broadcast %1318 : tile<1xi32> -> tile<64xi32>
    %result_50 = remi %n, %1319 signed : tile<64xi32>
    %1320 = reshape %c_5 : tile<i32> -> tile<1xi32>
    %1321 = broadcast %1320 : tile<1xi32> -> tile<64xi32>
    %result_51 = andi %n, %1321 : tile<64xi32>
    %1322 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1323 = broadcast %1322 : tile<1xi32> -> tile<64xi32>
    %result_52 = ori %n, %1323 : tile<64xi32>
    %1324 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1325 = broadcast %1324 : tile<1xi32> -> tile<64xi32>
    %result_53 = xori %n, %1325 : tile<64xi32>
    %result_54 = xori %n, %c_minus_1 : tile<64xi32>
    %1326 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1327 = broadcast %1326 : tile<1xi32> -> tile<64xi32>
    %result_55 = shli %n, %1327 : tile<64xi32>
    %1328 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1329 = broadcast %1328 : tile<1xi32> -> tile<64xi32>
    %result_56 = shri %n, %1329 signed : tile<64xi32>
    %result_57 = negi %n : tile<64xi32>
    %result_58 = absi %n : tile<64xi32>
    %1330 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1331 = broadcast %1330 : tile<1xi32> -> tile<64xi32>
    %result_59 = maxi %n, %1331 signed : tile<64xi32>
    %result_60 = ftoi %a signed : tile<64xf32> -> tile<64xi32>
    %1332 = cmpf less_than ordered %a, %b : tile<64xf32> -> tile<64xi1>
    %result_61 = exti %1332 unsigned : tile<64xi1> -> tile<64xi32>
    %1333 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1334 = broadcast %1333 : tile<1xi32> -> tile<64xi32>
    %1335 = cmpi not_equal %n, %1334, signed : tile<64xi32> -> tile<64xi1>
    %result_62 = exti %1335 unsigned : tile<64xi1> -> tile<64xi32>
    %1336 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %1337 = broadcast %1336 : tile<1xi32> -> tile<64xi32>
    %1338 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %1339 = broadcast %1338 : tile<1xi32> -> tile<64xi32>
    %1340 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %1341 = broadcast %1340 : tile<1xi32> -> tile<64xi32>
    %1342 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1343 = broadcast %1342 : tile<1xi32> -> tile<64xi32>
    %1344 = mulhii %1339, %1343 : tile<64xi32>
    %1345 = xori %1344, %1337 : tile<64xi32>
    %1346 = reshape %c_7 : tile<i32> -> tile<1xi32>
    %1347 = broadcast %1346 : tile<1xi32> -> tile<64xi32>
    %1348 = xori %1345, %1347 : tile<64xi32>
    %1349 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1350 = broadcast %1349 : tile<1xi32> -> tile<64xi32>
    %1351 = muli %1339, %1350 : tile<64xi32>
    %1352 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1353 = broadcast %1352 : tile<1xi32> -> tile<64xi32>
    %1354 = mulhii %i, %1353 : tile<64xi32>
    %1355 = xori %1354, %1341 : tile<64xi32>
    %1356 = reshape %c_0_2 : tile<i32> -> tile<1xi32>
    %1357 = broadcast %1356 : tile<1xi32> -> tile<64xi32>
    %1358 = xori %1355, %1357 : tile<64xi32>
    %1359 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1360 = broadcast %1359 : tile<1xi32> -> tile<64xi32>
    %1361 = muli %i, %1360 : tile<64xi32>
    %1362 = addi %c_7, %c_2654435769 : tile<i32>
    %1363 = addi %c_0_2, %c_3144134277 : tile<i32>
    %1364 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1365 = broadcast %1364 : tile<1xi32> -> tile<64xi32>
    %1366 = mulhii %1358, %1365 : tile<64xi32>
    %1367 = xori %1366, %1351 : tile<64xi32>
    %1368 = reshape %1362 : tile<i32> -> tile<1xi32>
    %1369 = broadcast %1368 : tile<1xi32> -> tile<64xi32>
    %1370 = xori %1367, %1369 : tile<64xi32>
    %1371 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1372 = broadcast %1371 : tile<1xi32> -> tile<64xi32>
    %1373 = muli %1358, %1372 : tile<64xi32>
    %1374 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1375 = broadcast %1374 : tile<1xi32> -> tile<64xi32>
    %1376 = mulhii %1348, %1375 : tile<64xi32>
    %1377 = xori %1376, %1361 : tile<64xi32>
    %1378 = reshape %1363 : tile<i32> -> tile<1xi32>
    %1379 = broadcast %1378 : tile<1xi32> -> tile<64xi32>
    %1380 = xori %1377, %1379 : tile<64xi32>
    %1381 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1382 = broadcast %1381 : tile<1xi32> -> tile<64xi32>
    %1383 = muli %1348, %1382 : tile<64xi32>
    %1384 = addi %1362, %c_2654435769 : tile<i32>
    %1385 = addi %1363, %c_3144134277 : tile<i32>
    %1386 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1387 = broadcast %1386 : tile<1xi32> -> tile<64xi32>
    %1388 = mulhii %1380, %1387 : tile<64xi32>
    %1389 = xori %1388, %1373 : tile<64xi32>
    %1390 = reshape %1384 : tile<i32> -> tile<1xi32>
    %1391 = broadcast %1390 : tile<1xi32> -> tile<64xi32>
    %1392 = xori %1389, %1391 : tile<64xi32>
    %1393 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1394 = broadcast %1393 : tile<1xi32> -> tile<64xi32>
    %1395 = muli %1380, %1394 : tile<64xi32>
    %1396 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1397 = broadcast %1396 : tile<1xi32> -> tile<64xi32>
    %1398 = mulhii %1370, %1397 : tile<64xi32>
    %1399 = xori %1398, %1383 : tile<64xi32>
    %1400 = reshape %1385 : tile<i32> -> tile<1xi32>
    %1401 = broadcast %1400 : tile<1xi32> -> tile<64xi32>
    %1402 = xori %1399, %1401 : tile<64xi32>
    %1403 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1404 = broadcast %1403 : tile<1xi32> -> tile<64xi32>
    %1405 = muli %1370, %1404 : tile<64xi32>
    %1406 = addi %1384, %c_2654435769 : tile<i32>
    %1407 = addi %1385, %c_3144134277 : tile<i32>
    %1408 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1409 = broadcast %1408 : tile<1xi32> -> tile<64xi32>
    %1410 = mulhii %1402, %1409 : tile<64xi32>
    %1411 = xori %1410, %1395 : tile<64xi32>
    %1412 = reshape %1406 : tile<i32> -> tile<1xi32>
    %1413 = broadcast %1412 : tile<1xi32> -> tile<64xi32>
    %1414 = xori %1411, %1413 : tile<64xi32>
    %1415 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1416 = broadcast %1415 : tile<1xi32> -> tile<64xi32>
    %1417 = muli %1402, %1416 : tile<64xi32>
    %1418 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1419 = broadcast %1418 : tile<1xi32> -> tile<64xi32>
    %1420 = mulhii %1392, %1419 : tile<64xi32>
    %1421 = xori %1420, %1405 : tile<64xi32>
    %1422 = reshape %1407 : tile<i32> -> tile<1xi32>
    %1423 = broadcast %1422 : tile<1xi32> -> tile<64xi32>
    %1424 = xori %1421, %1423 : tile<64xi32>
    %1425 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1426 = broadcast %1425 : tile<1xi32> -> tile<64xi32>
    %1427 = muli %1392, %1426 : tile<64xi32>
    %1428 = addi %1406, %c_2654435769 : tile<i32>
    %1429 = addi %1407, %c_3144134277 : tile<i32>
    %1430 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1431 = broadcast %1430 : tile<1xi32> -> tile<64xi32>
    %1432 = mulhii %1424, %1431 : tile<64xi32>
    %1433 = xori %1432, %1417 : tile<64xi32>
    %1434 = reshape %1428 : tile<i32> -> tile<1xi32>
    %1435 = broadcast %1434 : tile<1xi32> -> tile<64xi32>
    %1436 = xori %1433, %1435 : tile<64xi32>
    %1437 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1438 = broadcast %1437 : tile<1xi32> -> tile<64xi32>
    %1439 = muli %1424, %1438 : tile<64xi32>
    %1440 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1441 = broadcast %1440 : tile<1xi32> -> tile<64xi32>
    %1442 = mulhii %1414, %1441 : tile<64xi32>
    %1443 = xori %1442, %1427 : tile<64xi32>
    %1444 = reshape %1429 : tile<i32> -> tile<1xi32>
    %1445 = broadcast %1444 : tile<1xi32> -> tile<64xi32>
    %1446 = xori %1443, %1445 : tile<64xi32>
    %1447 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1448 = broadcast %1447 : tile<1xi32> -> tile<64xi32>
    %1449 = muli %1414, %1448 : tile<64xi32>
    %1450 = addi %1428, %c_2654435769 : tile<i32>
    %1451 = addi %1429, %c_3144134277 : tile<i32>
    %1452 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1453 = broadcast %1452 : tile<1xi32> -> tile<64xi32>
    %1454 = mulhii %1446, %1453 : tile<64xi32>
    %1455 = xori %1454, %1439 : tile<64xi32>
    %1456 = reshape %1450 : tile<i32> -> tile<1xi32>
    %1457 = broadcast %1456 : tile<1xi32> -> tile<64xi32>
    %1458 = xori %1455, %1457 : tile<64xi32>
    %1459 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1460 = broadcast %1459 : tile<1xi32> -> tile<64xi32>
    %1461 = muli %1446, %1460 : tile<64xi32>
    %1462 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1463 = broadcast %1462 : tile<1xi32> -> tile<64xi32>
    %1464 = mulhii %1436, %1463 : tile<64xi32>
    %1465 = xori %1464, %1449 : tile<64xi32>
    %1466 = reshape %1451 : tile<i32> -> tile<1xi32>
    %1467 = broadcast %1466 : tile<1xi32> -> tile<64xi32>
    %1468 = xori %1465, %1467 : tile<64xi32>
    %1469 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1470 = broadcast %1469 : tile<1xi32> -> tile<64xi32>
    %1471 = muli %1436, %1470 : tile<64xi32>
    %1472 = addi %1450, %c_2654435769 : tile<i32>
    %1473 = addi %1451, %c_3144134277 : tile<i32>
    %1474 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1475 = broadcast %1474 : tile<1xi32> -> tile<64xi32>
    %1476 = mulhii %1468, %1475 : tile<64xi32>
    %1477 = xori %1476, %1461 : tile<64xi32>
    %1478 = reshape %1472 : tile<i32> -> tile<1xi32>
    %1479 = broadcast %1478 : tile<1xi32> -> tile<64xi32>
    %1480 = xori %1477, %1479 : tile<64xi32>
    %1481 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1482 = broadcast %1481 : tile<1xi32> -> tile<64xi32>
    %1483 = muli %1468, %1482 : tile<64xi32>
    %1484 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1485 = broadcast %1484 : tile<1xi32> -> tile<64xi32>
    %1486 = mulhii %1458, %1485 : tile<64xi32>
    %1487 = xori %1486, %1471 : tile<64xi32>
    %1488 = reshape %1473 : tile<i32> -> tile<1xi32>
    %1489 = broadcast %1488 : tile<1xi32> -> tile<64xi32>
    %1490 = xori %1487, %1489 : tile<64xi32>
    %1491 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1492 = broadcast %1491 : tile<1xi32> -> tile<64xi32>
    %1493 = muli %1458, %1492 : tile<64xi32>
    %1494 = addi %1472, %c_2654435769 : tile<i32>
    %1495 = addi %1473, %c_3144134277 : tile<i32>
    %1496 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1497 = broadcast %1496 : tile<1xi32> -> tile<64xi32>
    %1498 = mulhii %1490, %1497 : tile<64xi32>
    %1499 = xori %1498, %1483 : tile<64xi32>
    %1500 = reshape %1494 : tile<i32> -> tile<1xi32>
    %1501 = broadcast %1500 : tile<1xi32> -> tile<64xi32>
    %1502 = xori %1499, %1501 : tile<64xi32>
    %1503 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1504 = broadcast %1503 : tile<1xi32> -> tile<64xi32>
    %1505 = mulhii %1480, %1504 : tile<64xi32>
    %1506 = xori %1505, %1493 : tile<64xi32>
    %1507 = reshape %1495 : tile<i32> -> tile<1xi32>
    %1508 = broadcast %1507 : tile<1xi32> -> tile<64xi32>
    %1509 = xori %1506, %1508 : tile<64xi32>
    %1510 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1511 = broadcast %1510 : tile<1xi32> -> tile<64xi32>
    %1512 = muli %1480, %1511 : tile<64xi32>
    %1513 = addi %1494, %c_2654435769 : tile<i32>
    %1514 = addi %1495, %c_3144134277 : tile<i32>
    %1515 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1516 = broadcast %1515 : tile<1xi32> -> tile<64xi32>
    %1517 = muli %1509, %1516 : tile<64xi32>
    %1518 = reshape %c_3528531795 : tile<i32> -> tile<1xi32>
    %1519 = broadcast %1518 : tile<1xi32> -> tile<64xi32>
    %1520 = mulhii %1502, %1519 : tile<64xi32>
    %1521 = xori %1520, %1512 : tile<64xi32>
    %1522 = reshape %1514 : tile<i32> -> tile<1xi32>
    %1523 = broadcast %1522 : tile<1xi32> -> tile<64xi32>
    %1524 = xori %1521, %1523 : tile<64xi32>
    %1525 = addi %1513, %c_2654435769 : tile<i32>
    %1526 = reshape %c_3449720151 : tile<i32> -> tile<1xi32>
    %1527 = broadcast %1526 : tile<1xi32> -> tile<64xi32>
    %1528 = mulhii %1524, %1527 : tile<64xi32>
    %1529 = xori %1528, %1517 : tile<64xi32>
    %1530 = reshape %1525 : tile<i32> -> tile<1xi32>
    %1531 = broadcast %1530 : tile<1xi32> -> tile<64xi32>
    %result_63 = xori %1529, %1531 : tile<64xi32>
    %result_64 = scan %n dim=0 reverse=false identities=[0 : i32] : tile<64xi32> -> tile<64xi32>
        (%x_10: tile<i32>, %acc_9: tile<i32>) {
      %1532 = addi %x_10, %acc_9 : tile<i32>
      yield %1532 : tile<i32>
    }
    %1533 = iota : tile<32xi32>
    %1534 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1535 = broadcast %1534 : tile<1xi32> -> tile<32xi32>
    %1536 = muli %1533, %1535 : tile<32xi32>
    %1537 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1538 = broadcast %1537 : tile<1xi32> -> tile<32xi32>
    %1539 = divi %1536, %1538 signed : tile<32xi32>
    %1540 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1541 = broadcast %1540 : tile<1xi32> -> tile<32xi32>
    %1542 = remi %1539, %1541 signed : tile<32xi32>
    %1543 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1544 = broadcast %1543 : tile<1xi32> -> tile<32xi32>
    %1545 = cmpi equal %1542, %1544, signed : tile<32xi32> -> tile<32xi1>
    %1546 = reshape %1545 : tile<32xi1> -> tile<32x1x1xi1>
    %1547 = reshape %n : tile<64xi32> -> tile<32x2x1xi32>
    %1548 = extract %1547[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1549 = extract %1547[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1550 = cmpi greater_than %1548, %1549, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1551 = xori %1550, %1546 : tile<32x1x1xi1>
    %1552 = select %1551, %1549, %1548 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1553 = select %1551, %1548, %1549 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1554 = cat %1552, %1553 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1555 = reshape %1554 : tile<32x2x1xi32> -> tile<64xi32>
    %1556 = iota : tile<16xi32>
    %1557 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1558 = broadcast %1557 : tile<1xi32> -> tile<16xi32>
    %1559 = muli %1556, %1558 : tile<16xi32>
    %1560 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1561 = broadcast %1560 : tile<1xi32> -> tile<16xi32>
    %1562 = divi %1559, %1561 signed : tile<16xi32>
    %1563 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1564 = broadcast %1563 : tile<1xi32> -> tile<16xi32>
    %1565 = remi %1562, %1564 signed : tile<16xi32>
    %1566 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1567 = broadcast %1566 : tile<1xi32> -> tile<16xi32>
    %1568 = cmpi equal %1565, %1567, signed : tile<16xi32> -> tile<16xi1>
    %1569 = reshape %1568 : tile<16xi1> -> tile<16x1x1xi1>
    %1570 = reshape %1555 : tile<64xi32> -> tile<16x2x2xi32>
    %1571 = extract %1570[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1572 = extract %1570[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1573 = cmpi greater_than %1571, %1572, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1574 = broadcast %1569 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1575 = xori %1573, %1574 : tile<16x1x2xi1>
    %1576 = select %1575, %1572, %1571 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1577 = select %1575, %1571, %1572 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1578 = cat %1576, %1577 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1579 = reshape %1578 : tile<16x2x2xi32> -> tile<64xi32>
    %1580 = iota : tile<32xi32>
    %1581 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1582 = broadcast %1581 : tile<1xi32> -> tile<32xi32>
    %1583 = muli %1580, %1582 : tile<32xi32>
    %1584 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1585 = broadcast %1584 : tile<1xi32> -> tile<32xi32>
    %1586 = divi %1583, %1585 signed : tile<32xi32>
    %1587 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1588 = broadcast %1587 : tile<1xi32> -> tile<32xi32>
    %1589 = remi %1586, %1588 signed : tile<32xi32>
    %1590 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1591 = broadcast %1590 : tile<1xi32> -> tile<32xi32>
    %1592 = cmpi equal %1589, %1591, signed : tile<32xi32> -> tile<32xi1>
    %1593 = reshape %1592 : tile<32xi1> -> tile<32x1x1xi1>
    %1594 = reshape %1579 : tile<64xi32> -> tile<32x2x1xi32>
    %1595 = extract %1594[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1596 = extract %1594[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1597 = cmpi greater_than %1595, %1596, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1598 = xori %1597, %1593 : tile<32x1x1xi1>
    %1599 = select %1598, %1596, %1595 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1600 = select %1598, %1595, %1596 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1601 = cat %1599, %1600 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1602 = reshape %1601 : tile<32x2x1xi32> -> tile<64xi32>
    %1603 = iota : tile<8xi32>
    %1604 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1605 = broadcast %1604 : tile<1xi32> -> tile<8xi32>
    %1606 = muli %1603, %1605 : tile<8xi32>
    %1607 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1608 = broadcast %1607 : tile<1xi32> -> tile<8xi32>
    %1609 = divi %1606, %1608 signed : tile<8xi32>
    %1610 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1611 = broadcast %1610 : tile<1xi32> -> tile<8xi32>
    %1612 = remi %1609, %1611 signed : tile<8xi32>
    %1613 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1614 = broadcast %1613 : tile<1xi32> -> tile<8xi32>
    %1615 = cmpi equal %1612, %1614, signed : tile<8xi32> -> tile<8xi1>
    %1616 = reshape %1615 : tile<8xi1> -> tile<8x1x1xi1>
    %1617 = reshape %1602 : tile<64xi32> -> tile<8x2x4xi32>
    %1618 = extract %1617[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1619 = extract %1617[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1620 = cmpi greater_than %1618, %1619, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1621 = broadcast %1616 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1622 = xori %1620, %1621 : tile<8x1x4xi1>
    %1623 = select %1622, %1619, %1618 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1624 = select %1622, %1618, %1619 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1625 = cat %1623, %1624 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1626 = reshape %1625 : tile<8x2x4xi32> -> tile<64xi32>
    %1627 = iota : tile<16xi32>
    %1628 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1629 = broadcast %1628 : tile<1xi32> -> tile<16xi32>
    %1630 = muli %1627, %1629 : tile<16xi32>
    %1631 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1632 = broadcast %1631 : tile<1xi32> -> tile<16xi32>
    %1633 = divi %1630, %1632 signed : tile<16xi32>
    %1634 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1635 = broadcast %1634 : tile<1xi32> -> tile<16xi32>
    %1636 = remi %1633, %1635 signed : tile<16xi32>
    %1637 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1638 = broadcast %1637 : tile<1xi32> -> tile<16xi32>
    %1639 = cmpi equal %1636, %1638, signed : tile<16xi32> -> tile<16xi1>
    %1640 = reshape %1639 : tile<16xi1> -> tile<16x1x1xi1>
    %1641 = reshape %1626 : tile<64xi32> -> tile<16x2x2xi32>
    %1642 = extract %1641[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1643 = extract %1641[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1644 = cmpi greater_than %1642, %1643, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1645 = broadcast %1640 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1646 = xori %1644, %1645 : tile<16x1x2xi1>
    %1647 = select %1646, %1643, %1642 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1648 = select %1646, %1642, %1643 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1649 = cat %1647, %1648 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1650 = reshape %1649 : tile<16x2x2xi32> -> tile<64xi32>
    %1651 = iota : tile<32xi32>
    %1652 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1653 = broadcast %1652 : tile<1xi32> -> tile<32xi32>
    %1654 = muli %1651, %1653 : tile<32xi32>
    %1655 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1656 = broadcast %1655 : tile<1xi32> -> tile<32xi32>
    %1657 = divi %1654, %1656 signed : tile<32xi32>
    %1658 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1659 = broadcast %1658 : tile<1xi32> -> tile<32xi32>
    %1660 = remi %1657, %1659 signed : tile<32xi32>
    %1661 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1662 = broadcast %1661 : tile<1xi32> -> tile<32xi32>
    %1663 = cmpi equal %1660, %1662, signed : tile<32xi32> -> tile<32xi1>
    %1664 = reshape %1663 : tile<32xi1> -> tile<32x1x1xi1>
    %1665 = reshape %1650 : tile<64xi32> -> tile<32x2x1xi32>
    %1666 = extract %1665[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1667 = extract %1665[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1668 = cmpi greater_than %1666, %1667, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1669 = xori %1668, %1664 : tile<32x1x1xi1>
    %1670 = select %1669, %1667, %1666 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1671 = select %1669, %1666, %1667 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1672 = cat %1670, %1671 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1673 = reshape %1672 : tile<32x2x1xi32> -> tile<64xi32>
    %1674 = iota : tile<4xi32>
    %1675 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1676 = broadcast %1675 : tile<1xi32> -> tile<4xi32>
    %1677 = muli %1674, %1676 : tile<4xi32>
    %1678 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1679 = broadcast %1678 : tile<1xi32> -> tile<4xi32>
    %1680 = divi %1677, %1679 signed : tile<4xi32>
    %1681 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1682 = broadcast %1681 : tile<1xi32> -> tile<4xi32>
    %1683 = remi %1680, %1682 signed : tile<4xi32>
    %1684 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1685 = broadcast %1684 : tile<1xi32> -> tile<4xi32>
    %1686 = cmpi equal %1683, %1685, signed : tile<4xi32> -> tile<4xi1>
    %1687 = reshape %1686 : tile<4xi1> -> tile<4x1x1xi1>
    %1688 = reshape %1673 : tile<64xi32> -> tile<4x2x8xi32>
    %1689 = extract %1688[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1690 = extract %1688[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1691 = cmpi greater_than %1689, %1690, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1692 = broadcast %1687 : tile<4x1x1xi1> -> tile<4x1x8xi1>
    %1693 = xori %1691, %1692 : tile<4x1x8xi1>
    %1694 = select %1693, %1690, %1689 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1695 = select %1693, %1689, %1690 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1696 = cat %1694, %1695 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1697 = reshape %1696 : tile<4x2x8xi32> -> tile<64xi32>
    %1698 = iota : tile<8xi32>
    %1699 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1700 = broadcast %1699 : tile<1xi32> -> tile<8xi32>
    %1701 = muli %1698, %1700 : tile<8xi32>
    %1702 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1703 = broadcast %1702 : tile<1xi32> -> tile<8xi32>
    %1704 = divi %1701, %1703 signed : tile<8xi32>
    %1705 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1706 = broadcast %1705 : tile<1xi32> -> tile<8xi32>
    %1707 = remi %1704, %1706 signed : tile<8xi32>
    %1708 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1709 = broadcast %1708 : tile<1xi32> -> tile<8xi32>
    %1710 = cmpi equal %1707, %1709, signed : tile<8xi32> -> tile<8xi1>
    %1711 = reshape %1710 : tile<8xi1> -> tile<8x1x1xi1>
    %1712 = reshape %1697 : tile<64xi32> -> tile<8x2x4xi32>
    %1713 = extract %1712[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1714 = extract %1712[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1715 = cmpi greater_than %1713, %1714, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1716 = broadcast %1711 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1717 = xori %1715, %1716 : tile<8x1x4xi1>
    %1718 = select %1717, %1714, %1713 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1719 = select %1717, %1713, %1714 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1720 = cat %1718, %1719 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1721 = reshape %1720 : tile<8x2x4xi32> -> tile<64xi32>
    %1722 = iota : tile<16xi32>
    %1723 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1724 = broadcast %1723 : tile<1xi32> -> tile<16xi32>
    %1725 = muli %1722, %1724 : tile<16xi32>
    %1726 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1727 = broadcast %1726 : tile<1xi32> -> tile<16xi32>
    %1728 = divi %1725, %1727 signed : tile<16xi32>
    %1729 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1730 = broadcast %1729 : tile<1xi32> -> tile<16xi32>
    %1731 = remi %1728, %1730 signed : tile<16xi32>
    %1732 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1733 = broadcast %1732 : tile<1xi32> -> tile<16xi32>
    %1734 = cmpi equal %1731, %1733, signed : tile<16xi32> -> tile<16xi1>
    %1735 = reshape %1734 : tile<16xi1> -> tile<16x1x1xi1>
    %1736 = reshape %1721 : tile<64xi32> -> tile<16x2x2xi32>
    %1737 = extract %1736[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1738 = extract %1736[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1739 = cmpi greater_than %1737, %1738, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1740 = broadcast %1735 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1741 = xori %1739, %1740 : tile<16x1x2xi1>
    %1742 = select %1741, %1738, %1737 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1743 = select %1741, %1737, %1738 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1744 = cat %1742, %1743 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1745 = reshape %1744 : tile<16x2x2xi32> -> tile<64xi32>
    %1746 = iota : tile<32xi32>
    %1747 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1748 = broadcast %1747 : tile<1xi32> -> tile<32xi32>
    %1749 = muli %1746, %1748 : tile<32xi32>
    %1750 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1751 = broadcast %1750 : tile<1xi32> -> tile<32xi32>
    %1752 = divi %1749, %1751 signed : tile<32xi32>
    %1753 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1754 = broadcast %1753 : tile<1xi32> -> tile<32xi32>
    %1755 = remi %1752, %1754 signed : tile<32xi32>
    %1756 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1757 = broadcast %1756 : tile<1xi32> -> tile<32xi32>
    %1758 = cmpi equal %1755, %1757, signed : tile<32xi32> -> tile<32xi1>
    %1759 = reshape %1758 : tile<32xi1> -> tile<32x1x1xi1>
    %1760 = reshape %1745 : tile<64xi32> -> tile<32x2x1xi32>
    %1761 = extract %1760[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1762 = extract %1760[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1763 = cmpi greater_than %1761, %1762, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1764 = xori %1763, %1759 : tile<32x1x1xi1>
    %1765 = select %1764, %1762, %1761 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1766 = select %1764, %1761, %1762 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1767 = cat %1765, %1766 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1768 = reshape %1767 : tile<32x2x1xi32> -> tile<64xi32>
    %1769 = iota : tile<2xi32>
    %1770 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1771 = broadcast %1770 : tile<1xi32> -> tile<2xi32>
    %1772 = muli %1769, %1771 : tile<2xi32>
    %1773 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1774 = broadcast %1773 : tile<1xi32> -> tile<2xi32>
    %1775 = divi %1772, %1774 signed : tile<2xi32>
    %1776 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1777 = broadcast %1776 : tile<1xi32> -> tile<2xi32>
    %1778 = remi %1775, %1777 signed : tile<2xi32>
    %1779 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1780 = broadcast %1779 : tile<1xi32> -> tile<2xi32>
    %1781 = cmpi equal %1778, %1780, signed : tile<2xi32> -> tile<2xi1>
    %1782 = reshape %1781 : tile<2xi1> -> tile<2x1x1xi1>
    %1783 = reshape %1768 : tile<64xi32> -> tile<2x2x16xi32>
    %1784 = extract %1783[%c_0, %c_0, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1785 = extract %1783[%c_0, %c_1, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1786 = cmpi greater_than %1784, %1785, signed : tile<2x1x16xi32> -> tile<2x1x16xi1>
    %1787 = broadcast %1782 : tile<2x1x1xi1> -> tile<2x1x16xi1>
    %1788 = xori %1786, %1787 : tile<2x1x16xi1>
    %1789 = select %1788, %1785, %1784 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1790 = select %1788, %1784, %1785 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1791 = cat %1789, %1790 dim = 1 : tile<2x1x16xi32>, tile<2x1x16xi32> -> tile<2x2x16xi32>
    %1792 = reshape %1791 : tile<2x2x16xi32> -> tile<64xi32>
    %1793 = iota : tile<4xi32>
    %1794 = reshape %c_16 : tile<i32> -> tile<1xi32>
    %1795 = broadcast %1794 : tile<1xi32> -> tile<4xi32>
    %1796 = muli %1793, %1795 : tile<4xi32>
    %1797 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1798 = broadcast %1797 : tile<1xi32> -> tile<4xi32>
    %1799 = divi %1796, %1798 signed : tile<4xi32>
    %1800 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1801 = broadcast %1800 : tile<1xi32> -> tile<4xi32>
    %1802 = remi %1799, %1801 signed : tile<4xi32>
    %1803 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1804 = broadcast %1803 : tile<1xi32> -> tile<4xi32>
    %1805 = cmpi equal %1802, %1804, signed : tile<4xi32> -> tile<4xi1>
    %1806 = reshape %1805 : tile<4xi1> -> tile<4x1x1xi1>
    %1807 = reshape %1792 : tile<64xi32> -> tile<4x2x8xi32>
    %1808 = extract %1807[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1809 = extract %1807[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1810 = cmpi greater_than %1808, %1809, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1811 = broadcast %1806 : tile<4x1x1xi1> -> tile<4x1x8xi1>
    %1812 = xori %1810, %1811 : tile<4x1x8xi1>
    %1813 = select %1812, %1809, %1808 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1814 = select %1812, %1808, %1809 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1815 = cat %1813, %1814 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1816 = reshape %1815 : tile<4x2x8xi32> -> tile<64xi32>
    %1817 = iota : tile<8xi32>
    %1818 = reshape %c_8 : tile<i32> -> tile<1xi32>
    %1819 = broadcast %1818 : tile<1xi32> -> tile<8xi32>
    %1820 = muli %1817, %1819 : tile<8xi32>
    %1821 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1822 = broadcast %1821 : tile<1xi32> -> tile<8xi32>
    %1823 = divi %1820, %1822 signed : tile<8xi32>
    %1824 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1825 = broadcast %1824 : tile<1xi32> -> tile<8xi32>
    %1826 = remi %1823, %1825 signed : tile<8xi32>
    %1827 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1828 = broadcast %1827 : tile<1xi32> -> tile<8xi32>
    %1829 = cmpi equal %1826, %1828, signed : tile<8xi32> -> tile<8xi1>
    %1830 = reshape %1829 : tile<8xi1> -> tile<8x1x1xi1>
    %1831 = reshape %1816 : tile<64xi32> -> tile<8x2x4xi32>
    %1832 = extract %1831[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1833 = extract %1831[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1834 = cmpi greater_than %1832, %1833, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1835 = broadcast %1830 : tile<8x1x1xi1> -> tile<8x1x4xi1>
    %1836 = xori %1834, %1835 : tile<8x1x4xi1>
    %1837 = select %1836, %1833, %1832 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1838 = select %1836, %1832, %1833 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1839 = cat %1837, %1838 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1840 = reshape %1839 : tile<8x2x4xi32> -> tile<64xi32>
    %1841 = iota : tile<16xi32>
    %1842 = reshape %c_4 : tile<i32> -> tile<1xi32>
    %1843 = broadcast %1842 : tile<1xi32> -> tile<16xi32>
    %1844 = muli %1841, %1843 : tile<16xi32>
    %1845 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1846 = broadcast %1845 : tile<1xi32> -> tile<16xi32>
    %1847 = divi %1844, %1846 signed : tile<16xi32>
    %1848 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1849 = broadcast %1848 : tile<1xi32> -> tile<16xi32>
    %1850 = remi %1847, %1849 signed : tile<16xi32>
    %1851 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1852 = broadcast %1851 : tile<1xi32> -> tile<16xi32>
    %1853 = cmpi equal %1850, %1852, signed : tile<16xi32> -> tile<16xi1>
    %1854 = reshape %1853 : tile<16xi1> -> tile<16x1x1xi1>
    %1855 = reshape %1840 : tile<64xi32> -> tile<16x2x2xi32>
    %1856 = extract %1855[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1857 = extract %1855[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1858 = cmpi greater_than %1856, %1857, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1859 = broadcast %1854 : tile<16x1x1xi1> -> tile<16x1x2xi1>
    %1860 = xori %1858, %1859 : tile<16x1x2xi1>
    %1861 = select %1860, %1857, %1856 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1862 = select %1860, %1856, %1857 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1863 = cat %1861, %1862 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1864 = reshape %1863 : tile<16x2x2xi32> -> tile<64xi32>
    %1865 = iota : tile<32xi32>
    %1866 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1867 = broadcast %1866 : tile<1xi32> -> tile<32xi32>
    %1868 = muli %1865, %1867 : tile<32xi32>
    %1869 = reshape %c_32 : tile<i32> -> tile<1xi32>
    %1870 = broadcast %1869 : tile<1xi32> -> tile<32xi32>
    %1871 = divi %1868, %1870 signed : tile<32xi32>
    %1872 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1873 = broadcast %1872 : tile<1xi32> -> tile<32xi32>
    %1874 = remi %1871, %1873 signed : tile<32xi32>
    %1875 = reshape %c_1 : tile<i32> -> tile<1xi32>
    %1876 = broadcast %1875 : tile<1xi32> -> tile<32xi32>
    %1877 = cmpi equal %1874, %1876, signed : tile<32xi32> -> tile<32xi1>
    %1878 = reshape %1877 : tile<32xi1> -> tile<32x1x1xi1>
    %1879 = reshape %1864 : tile<64xi32> -> tile<32x2x1xi32>
    %1880 = extract %1879[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1881 = extract %1879[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1882 = cmpi greater_than %1880, %1881, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1883 = xori %1882, %1878 : tile<32x1x1xi1>
    %1884 = select %1883, %1881, %1880 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1885 = select %1883, %1880, %1881 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1886 = cat %1884, %1885 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %1887 = reshape %1886 : tile<32x2x1xi32> -> tile<64xi32>
    %1888 = reshape %1887 : tile<64xi32> -> tile<1x2x32xi32>
    %1889 = extract %1888[%c_0, %c_0, %c_0] : tile<1x2x32xi32> -> tile<1x1x32xi32>
    %1890 = extract %1888[%c_0, %c_1, %c_0] : tile<1x2x32xi32> -> tile<1x1x32xi32>
    %1891 = cmpi greater_than %1889, %1890, signed : tile<1x1x32xi32> -> tile<1x1x32xi1>
    %1892 = select %1891, %1890, %1889 : tile<1x1x32xi1>, tile<1x1x32xi32>
    %1893 = select %1891, %1889, %1890 : tile<1x1x32xi1>, tile<1x1x32xi32>
    %1894 = cat %1892, %1893 dim = 1 : tile<1x1x32xi32>, tile<1x1x32xi32> -> tile<1x2x32xi32>
    %1895 = reshape %1894 : tile<1x2x32xi32> -> tile<64xi32>
    %1896 = reshape %1895 : tile<64xi32> -> tile<2x2x16xi32>
    %1897 = extract %1896[%c_0, %c_0, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1898 = extract %1896[%c_0, %c_1, %c_0] : tile<2x2x16xi32> -> tile<2x1x16xi32>
    %1899 = cmpi greater_than %1897, %1898, signed : tile<2x1x16xi32> -> tile<2x1x16xi1>
    %1900 = select %1899, %1898, %1897 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1901 = select %1899, %1897, %1898 : tile<2x1x16xi1>, tile<2x1x16xi32>
    %1902 = cat %1900, %1901 dim = 1 : tile<2x1x16xi32>, tile<2x1x16xi32> -> tile<2x2x16xi32>
    %1903 = reshape %1902 : tile<2x2x16xi32> -> tile<64xi32>
    %1904 = reshape %1903 : tile<64xi32> -> tile<4x2x8xi32>
    %1905 = extract %1904[%c_0, %c_0, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1906 = extract %1904[%c_0, %c_1, %c_0] : tile<4x2x8xi32> -> tile<4x1x8xi32>
    %1907 = cmpi greater_than %1905, %1906, signed : tile<4x1x8xi32> -> tile<4x1x8xi1>
    %1908 = select %1907, %1906, %1905 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1909 = select %1907, %1905, %1906 : tile<4x1x8xi1>, tile<4x1x8xi32>
    %1910 = cat %1908, %1909 dim = 1 : tile<4x1x8xi32>, tile<4x1x8xi32> -> tile<4x2x8xi32>
    %1911 = reshape %1910 : tile<4x2x8xi32> -> tile<64xi32>
    %1912 = reshape %1911 : tile<64xi32> -> tile<8x2x4xi32>
    %1913 = extract %1912[%c_0, %c_0, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1914 = extract %1912[%c_0, %c_1, %c_0] : tile<8x2x4xi32> -> tile<8x1x4xi32>
    %1915 = cmpi greater_than %1913, %1914, signed : tile<8x1x4xi32> -> tile<8x1x4xi1>
    %1916 = select %1915, %1914, %1913 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1917 = select %1915, %1913, %1914 : tile<8x1x4xi1>, tile<8x1x4xi32>
    %1918 = cat %1916, %1917 dim = 1 : tile<8x1x4xi32>, tile<8x1x4xi32> -> tile<8x2x4xi32>
    %1919 = reshape %1918 : tile<8x2x4xi32> -> tile<64xi32>
    %1920 = reshape %1919 : tile<64xi32> -> tile<16x2x2xi32>
    %1921 = extract %1920[%c_0, %c_0, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1922 = extract %1920[%c_0, %c_1, %c_0] : tile<16x2x2xi32> -> tile<16x1x2xi32>
    %1923 = cmpi greater_than %1921, %1922, signed : tile<16x1x2xi32> -> tile<16x1x2xi1>
    %1924 = select %1923, %1922, %1921 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1925 = select %1923, %1921, %1922 : tile<16x1x2xi1>, tile<16x1x2xi32>
    %1926 = cat %1924, %1925 dim = 1 : tile<16x1x2xi32>, tile<16x1x2xi32> -> tile<16x2x2xi32>
    %1927 = reshape %1926 : tile<16x2x2xi32> -> tile<64xi32>
    %1928 = reshape %1927 : tile<64xi32> -> tile<32x2x1xi32>
    %1929 = extract %1928[%c_0, %c_0, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1930 = extract %1928[%c_0, %c_1, %c_0] : tile<32x2x1xi32> -> tile<32x1x1xi32>
    %1931 = cmpi greater_than %1929, %1930, signed : tile<32x1x1xi32> -> tile<32x1x1xi1>
    %1932 = select %1931, %1930, %1929 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1933 = select %1931, %1929, %1930 : tile<32x1x1xi1>, tile<32x1x1xi32>
    %1934 = cat %1932, %1933 dim = 1 : tile<32x1x1xi32>, tile<32x1x1xi32> -> tile<32x2x1xi32>
    %result_65 = reshape %1934 : tile<32x2x1xi32> -> tile<64xi32>
    %1935 = cmpf equal ordered %a, %a : tile<64xf32> -> tile<64xi1>
    %1936 = reshape %c_minus_inf : tile<f32> -> tile<1xf32>
    %1937 = broadcast %1936 : tile<1xf32> -> tile<64xf32>
    %1938 = select %1935, %a, %1937 : tile<64xi1>, tile<64xf32>
    %1939 = iota : tile<64xi32>
    %1940, %1941 = reduce %1938, %1939 dim=0 identities=[0xFF800000 : f32, 2147483647 : i32]
        : tile<64xf32>, tile<64xi32> -> tile<f32>, tile<i32>
        (%x_11: tile<f32>, %acc_10: tile<f32>, %x_12: tile<i32>, %acc_11: tile<i32>) {
      %1942 = cmpf greater_than ordered %x_11, %acc_10 : tile<f32> -> tile<i1>
      %1943 = cmpf equal ordered %x_11, %acc_10 : tile<f32> -> tile<i1>
      %1944 = cmpi less_than %x_12, %acc_11, signed : tile<i32> -> tile<i1>
      %1945 = andi %1943, %1944 : tile<i1>
      %1946 = ori %1942, %1945 : tile<i1>
      %1947 = select %1946, %x_11, %acc_10 : tile<i1>, tile<f32>
      %1948 = select %1946, %x_12, %acc_11 : tile<i1>, tile<i32>
      yield %1947, %1948 : tile<f32>, tile<i32>
    }
    %1949 = reshape %1941 : tile<i32> -> tile<1xi32>
    %result_66 = broadcast %1949 : tile<1xi32> -> tile<64xi32>
    %1950 = cmpf equal ordered %a, %a : tile<64xf32> -> tile<64xi1>
    %1951 = reshape %c_inf : tile<f32> -> tile<1xf32>
    %1952 = broadcast %1951 : tile<1xf32> -> tile<64xf32>
    %1953 = select %1950, %a, %1952 : tile<64xi1>, tile<64xf32>
    %1954 = iota : tile<64xi32>
    %1955, %1956 = reduce %1953, %1954 dim=0 identities=[0x7F800000 : f32, 2147483647 : i32]
        : tile<64xf32>, tile<64xi32> -> tile<f32>, tile<i32>
        (%x_13: tile<f32>, %acc_12: tile<f32>, %x_14: tile<i32>, %acc_13: tile<i32>) {
      %1957 = cmpf less_than ordered %x_13, %acc_12 : tile<f32> -> tile<i1>
      %1958 = cmpf equal ordered %x_13, %acc_12 : tile<f32> -> tile<i1>
      %1959 = cmpi less_than %x_14, %acc_13, signed : tile<i32> -> tile<i1>
      %1960 = andi %1958, %1959 : tile<i1>
      %1961 = ori %1957, %1960 : tile<i1>
      %1962 = select %1961, %x_13, %acc_12 : tile<i1>, tile<f32>
      %1963 = select %1961, %x_14, %acc_13 : tile<i1>, tile<i32>
      yield %1962, %1963 : tile<f32>, tile<i32>
    }
    %1964 = reshape %1956 : tile<i32> -> tile<1xi32>
    %result_67 = broadcast %1964 : tile<1xi32> -> tile<64xi32>
    %1965 = reduce %n dim=0 identities=[0 : i32] : tile<64xi32> -> tile<i32>
        (%x_15: tile<i32>, %acc_14: tile<i32>) {
      %1966 = xori %x_15, %acc_14 : tile<i32>
      yield %1966 : tile<i32>
    }
    %1967 = reshape %1965 : tile<i32> -> tile<1xi32>
    %result_68 = broadcast %1967 : tile<1xi32> -> tile<64xi32>
    %1968 = reduce %n dim=0 identities=[0 : i32] : tile<64xi32> -> tile<i32>
        (%x_16: tile<i32>, %acc_15: tile<i32>) {
      %1969 = addi %x_16, %acc_15 : tile<i32>
      yield %1969 : tile<i32>
    }
    %1970 = reshape %1968 : tile<i32> -> tile<1xi32>
    %result_69 = broadcast %1970 : tile<1xi32> -> tile<64xi32>
    %1971 = trunci %n : tile<64xi32> -> tile<64xi8>
    %result_70 = exti %1971 signed : tile<64xi8> -> tile<64xi32>
    %1972 = reshape %n : tile<64xi32> -> tile<64x1xi32>
    %1973 = iota : tile<64xi32>
    %1974 = reshape %1973 : tile<64xi32> -> tile<1x64xi32>
    %1975 = broadcast %1972 : tile<64x1xi32> -> tile<64x64xi32>
    %1976 = broadcast %1974 : tile<1x64xi32> -> tile<64x64xi32>
    %1977 = cmpi equal %1975, %1976, signed : tile<64x64xi32> -> tile<64x64xi1>
    %1978 = exti %1977 unsigned : tile<64x64xi1> -> tile<64x64xi32>
    %result_71 = reduce %1978 dim=0 identities=[0 : i32] : tile<64x64xi32> -> tile<64xi32>
        (%x_17: tile<i32>, %acc_16: tile<i32>) {
      %1979 = addi %x_17, %acc_16 : tile<i32>
      yield %1979 : tile<i32>
    }
    %1980 = reshape %c_2 : tile<i32> -> tile<1xi32>
    %1981 = broadcast %1980 : tile<1xi32> -> tile<64xi32>
    %1982 = addi %n, %1981 : tile<64xi32>
    %1983 = reshape %c_3 : tile<i32> -> tile<1xi32>
    %1984 = broadcast %1983 : tile<1xi32> -> tile<64xi32>
    %result_72 = divi %1982, %1984 signed : tile<64xi32>
    %1985 = trunci %n : tile<64xi32> -> tile<64xi8>
    %1986 = exti %1985 signed : tile<64xi8> -> tile<64xi32>
    %result_73 = scan %1986 dim=0 reverse=false identities=[0 : i32] : tile<64xi32> -> tile<64xi32>
        (%x_18: tile<i32>, %acc_17: tile<i32>) {
      %1987 = addi %x_18, %acc_17 : tile<i32>
      yield %1987 : tile<i32>
    }
    %1988 = offset %ints, %c_0 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1989 = reshape %1988 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1990 = broadcast %1989 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1991 = offset %1990, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_48 = store_ptr_tko weak %1991, %result_47 token = %wrote_47
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1992 = offset %ints, %c_64 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1993 = reshape %1992 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1994 = broadcast %1993 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1995 = offset %1994, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_49 = store_ptr_tko weak %1995, %result_48 token = %wrote_48
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %1996 = offset %ints, %c_128 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %1997 = reshape %1996 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %1998 = broadcast %1997 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %1999 = offset %1998, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_50 = store_ptr_tko weak %1999, %result_49 token = %wrote_49
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2000 = offset %ints, %c_192 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2001 = reshape %2000 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2002 = broadcast %2001 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2003 = offset %2002, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_51 = store_ptr_tko weak %2003, %result_50 token = %wrote_50
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2004 = offset %ints, %c_256 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2005 = reshape %2004 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2006 = broadcast %2005 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2007 = offset %2006, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_52 = store_ptr_tko weak %2007, %result_51 token = %wrote_51
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2008 = offset %ints, %c_320 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2009 = reshape %2008 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2010 = broadcast %2009 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2011 = offset %2010, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_53 = store_ptr_tko weak %2011, %result_52 token = %wrote_52
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2012 = offset %ints, %c_384 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2013 = reshape %2012 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2014 = broadcast %2013 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2015 = offset %2014, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_54 = store_ptr_tko weak %2015, %result_53 token = %wrote_53
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2016 = offset %ints, %c_448 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2017 = reshape %2016 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2018 = broadcast %2017 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2019 = offset %2018, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_55 = store_ptr_tko weak %2019, %result_54 token = %wrote_54
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2020 = offset %ints, %c_512 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2021 = reshape %2020 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2022 = broadcast %2021 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2023 = offset %2022, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_56 = store_ptr_tko weak %2023, %result_55 token = %wrote_55
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2024 = offset %ints, %c_576 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2025 = reshape %2024 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2026 = broadcast %2025 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2027 = offset %2026, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_57 = store_ptr_tko weak %2027, %result_56 token = %wrote_56
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2028 = offset %ints, %c_640 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2029 = reshape %2028 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2030 = broadcast %2029 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2031 = offset %2030, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_58 = store_ptr_tko weak %2031, %result_57 token = %wrote_57
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2032 = offset %ints, %c_704 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2033 = reshape %2032 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2034 = broadcast %2033 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2035 = offset %2034, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_59 = store_ptr_tko weak %2035, %result_58 token = %wrote_58
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2036 = offset %ints, %c_768 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2037 = reshape %2036 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2038 = broadcast %2037 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2039 = offset %2038, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_60 = store_ptr_tko weak %2039, %result_59 token = %wrote_59
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2040 = offset %ints, %c_832 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2041 = reshape %2040 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2042 = broadcast %2041 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2043 = offset %2042, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_61 = store_ptr_tko weak %2043, %result_60 token = %wrote_60
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2044 = offset %ints, %c_896 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2045 = reshape %2044 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2046 = broadcast %2045 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2047 = offset %2046, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_62 = store_ptr_tko weak %2047, %result_61 token = %wrote_61
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2048 = offset %ints, %c_960 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2049 = reshape %2048 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2050 = broadcast %2049 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2051 = offset %2050, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_63 = store_ptr_tko weak %2051, %result_62 token = %wrote_62
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2052 = offset %ints, %c_1024 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2053 = reshape %2052 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2054 = broadcast %2053 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2055 = offset %2054, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_64 = store_ptr_tko weak %2055, %result_63 token = %wrote_63
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2056 = offset %ints, %c_1088 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2057 = reshape %2056 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2058 = broadcast %2057 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2059 = offset %2058, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_65 = store_ptr_tko weak %2059, %result_64 token = %wrote_64
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2060 = offset %ints, %c_1152 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2061 = reshape %2060 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2062 = broadcast %2061 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2063 = offset %2062, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_66 = store_ptr_tko weak %2063, %result_65 token = %wrote_65
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2064 = offset %ints, %c_1216 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2065 = reshape %2064 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2066 = broadcast %2065 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2067 = offset %2066, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_67 = store_ptr_tko weak %2067, %result_66 token = %wrote_66
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2068 = offset %ints, %c_1280 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2069 = reshape %2068 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2070 = broadcast %2069 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2071 = offset %2070, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_68 = store_ptr_tko weak %2071, %result_67 token = %wrote_67
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2072 = offset %ints, %c_1344 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2073 = reshape %2072 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2074 = broadcast %2073 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2075 = offset %2074, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_69 = store_ptr_tko weak %2075, %result_68 token = %wrote_68
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2076 = offset %ints, %c_1408 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2077 = reshape %2076 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2078 = broadcast %2077 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2079 = offset %2078, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_70 = store_ptr_tko weak %2079, %result_69 token = %wrote_69
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2080 = offset %ints, %c_1472 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2081 = reshape %2080 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2082 = broadcast %2081 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2083 = offset %2082, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_71 = store_ptr_tko weak %2083, %result_70 token = %wrote_70
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2084 = offset %ints, %c_1536 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2085 = reshape %2084 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2086 = broadcast %2085 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2087 = offset %2086, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_72 = store_ptr_tko weak %2087, %result_71 token = %wrote_71
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2088 = offset %ints, %c_1600 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2089 = reshape %2088 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2090 = broadcast %2089 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2091 = offset %2090, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_73 = store_ptr_tko weak %2091, %result_72 token = %wrote_72
        : tile<64xptr<i32>>, tile<64xi32> -> token
    %2092 = offset %ints, %c_1664 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
    %2093 = reshape %2092 : tile<ptr<i32>> -> tile<1xptr<i32>>
    %2094 = broadcast %2093 : tile<1xptr<i32>> -> tile<64xptr<i32>>
    %2095 = offset %2094, %i : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>>
    %wrote_74 = store_ptr_tko weak %2095, %result_73 token = %wrote_73
        : tile<64xptr<i32>>, tile<64xi32> -> token
    return
  }
}
