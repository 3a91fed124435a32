# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's names that are not implemented: the error comes when one is named, not when it is used.

The lists are TensorFlow's public names, by module. A name that a module of ours has is found there
before it is looked up here: a list need not shrink when something is added.
A module says `__getattr__ = _not_implemented.getter("tf.nn")`.
"""
from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any, Callable, Dict, FrozenSet

from plimsoll import _core, errors


def _names(text: str) -> FrozenSet[str]:
    return frozenset(text.split())


_NAMES: Dict[str, FrozenSet[str]] = {
    "tf": _names("""
        AggregationMethod Assert CriticalSection DeviceSpec GradientTape
        IndexedSlicesSpec Module Operation OptionalSpec RaggedTensor RaggedTensorSpec
        RegisterGradient SparseTensorSpec TensorArray TensorArraySpec TypeSpec UnconnectedGradients
        Variable VariableAggregation VariableSynchronization approx_top_k argsort as_string
        assert_equal assert_greater assert_less assert_rank atan2 audio autodiff batch_to_space
        bitcast boolean_mask broadcast_dynamic_shape broadcast_static_shape case clip_by_global_norm
        clip_by_norm clip_by_value complex complex64 complex128 cumsum custom_gradient
        distribute double dynamic_partition dynamic_stitch edit_distance eig eigvals einsum
        ensure_shape estimator experimental extract_volume_patches fftnd feature_column fingerprint
        floor foldl foldr gather_nd grad_pass_through gradients get_static_value
        graph_util guarantee_const half hessians histogram_fixed_width histogram_fixed_width_bins
        initializers inside_function is_symbolic_tensor is_tensor keras linspace lite load_library
        load_op_library lookup losses make_ndarray make_tensor_proto math metrics mlir
        meshgrid norm numpy_function one_hot ones_initializer optimizers parallel_stack
        profiler py_function qint16 qint32 qint8 quantization queue quint16 quint8 ragged ragged_fill
        random_index_shuffle raw_ops realdiv recompute_grad register_tensor_conversion_function
        ifftnd irfftnd matrix_square_root mixed_precision no_gradient
        nondifferentiable_batch_function repeat required_space_to_batch_paddings resource reverse_sequence rfftnd saved_model scan
        scatter_nd searchsorted sequence_mask sets shape_n signal space_to_batch
        space_to_batch_nd stop_gradient strided_slice switch_case sysconfig
        tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub
        tensor_scatter_nd_update tensordot test tpu train truncatediv truncatemod
        type_spec_from_value types unique unique_with_counts unravel_index unstack variant
        variable_creator_scope vectorized_map summary xla zeros_initializer
    """),
    "tf.experimental": _names("""
        BatchableExtensionType DynamicRaggedShape ExtensionType ExtensionTypeBatchEncoder Optional
        RowPartition StructuredTensor async_clear_error async_scope dispatch_for_api
        dispatch_for_binary_elementwise_apis dispatch_for_unary_elementwise_apis dlpack dtensor
        enable_strict_mode extension_type function_executor_type numpy register_filesystem_plugin
        tensorrt unregister_dispatch_for
    """),
    "tf.autograph": _names("to_code to_graph trace set_verbosity experimental"),
    "tf.bitwise": _names("bitwise_and bitwise_or bitwise_xor invert left_shift right_shift"),
    "tf.config": _names("""
        LogicalDevice LogicalDeviceConfiguration PhysicalDevice experimental_connect_to_cluster
        experimental_connect_to_host experimental_functions_run_eagerly
        experimental_run_functions_eagerly experimental optimizer
    """),
    "tf.config.experimental": _names("""
        ClusterDeviceFilters disable_mlir_bridge disable_mlir_graph_optimization enable_mlir_bridge
        enable_mlir_graph_optimization enable_op_determinism enable_tensor_float_32_execution
        get_device_policy get_synchronous_execution mlir_bridge_rollout set_device_policy
        set_synchronous_execution tensor_float_32_execution_enabled
    """),
    "tf.data": _names("""
        Dataset DatasetSpec FixedLengthRecordDataset Iterator IteratorSpec NumpyIterator Options
        TFRecordDataset TextLineDataset ThreadingOptions experimental
    """),
    "tf.data.experimental": _names("""
        AutoShardPolicy AutotuneAlgorithm AutotuneOptions CheckpointInputPipelineHook Counter
        CsvDataset DatasetInitializer DatasetStructure DistributeOptions ExternalStatePolicy
        OptimizationOptions Optional OptionalStructure RaggedTensorStructure RandomDataset Reducer
        SparseTensorStructure SqlDataset StatsAggregator TFRecordWriter TensorArrayStructure
        TensorStructure ThreadingOptions assert_cardinality at bucket_by_sequence_length cardinality
        choose_from_datasets copy_to_device dense_to_ragged_batch dense_to_sparse_batch
        enable_debug_mode enumerate_dataset from_list from_variant get_model_proto
        get_next_as_optional get_single_element get_structure group_by_reducer group_by_window
        ignore_errors index_table_from_dataset load make_batched_features_dataset make_csv_dataset
        make_saveable_from_iterator map_and_batch pad_to_cardinality parallel_interleave
        parse_example_dataset prefetch_to_device rejection_resample sample_from_datasets save scan
        service shuffle_and_repeat snapshot table_from_dataset take_while to_variant unbatch unique
    """),
    "tf.debugging": _names("""
        disable_check_numerics disable_traceback_filtering enable_check_numerics
        enable_traceback_filtering experimental is_traceback_filtering_enabled
    """),
    "tf.image": _names("""
        ResizeMethod adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality
        adjust_saturation central_crop combined_non_max_suppression convert_image_dtype
        crop_and_resize crop_to_bounding_box decode_and_crop_jpeg decode_bmp decode_gif decode_image
        decode_jpeg decode_png draw_bounding_boxes encode_jpeg encode_png extract_glimpse
        extract_jpeg_shape extract_patches flip_left_right flip_up_down generate_bounding_box_proposals
        grayscale_to_rgb hsv_to_rgb image_gradients is_jpeg non_max_suppression
        non_max_suppression_overlaps non_max_suppression_padded non_max_suppression_with_scores
        pad_to_bounding_box per_image_standardization psnr random_brightness random_contrast
        random_crop random_flip_left_right random_flip_up_down random_hue random_jpeg_quality
        random_saturation resize resize_with_crop_or_pad resize_with_pad rgb_to_grayscale rgb_to_hsv
        rgb_to_yiq rgb_to_yuv rot90 sample_distorted_bounding_box sobel_edges ssim ssim_multiscale
        stateless_random_brightness stateless_random_contrast stateless_random_crop
        stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue
        stateless_random_jpeg_quality stateless_random_saturation
        stateless_sample_distorted_bounding_box total_variation transpose yiq_to_rgb yuv_to_rgb
    """),
    "tf.io": _names("""
        FixedLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature TFRecordOptions
        TFRecordWriter VarLenFeature decode_and_crop_jpeg decode_base64 decode_bmp decode_compressed
        decode_csv decode_gif decode_image decode_jpeg decode_json_example decode_png decode_proto
        decode_raw deserialize_many_sparse encode_base64 encode_jpeg encode_png encode_proto
        extract_jpeg_shape gfile is_jpeg match_filenames_once matching_files parse_example
        parse_sequence_example parse_single_example parse_single_sequence_example parse_tensor
        read_file serialize_many_sparse serialize_sparse serialize_tensor write_file write_graph
    """),
    "tf.io.gfile": _names("""
        GFile copy exists get_registered_schemes glob isdir join listdir makedirs mkdir remove rename
        rmtree stat walk
    """),
    "tf.linalg": _names("""
        LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorCirculant
        LinearOperatorDiag LinearOperatorFullMatrix LinearOperatorIdentity LinearOperatorKronecker
        LinearOperatorLowerTriangular LinearOperatorScaledIdentity LinearOperatorToeplitz
        LinearOperatorZeros adjoint band_part banded_triangular_solve cholesky cholesky_solve cross
        det diag diag_part eig eigh eigh_tridiagonal eigvals eigvalsh einsum experimental expm eye
        global_norm inv l2_normalize logdet logm lstsq lu lu_matrix_inverse lu_reconstruct lu_solve
        matmul matrix_rank matrix_transpose matvec norm normalize pinv qr set_diag slogdet solve sqrtm
        svd tensor_diag tensor_diag_part tensordot trace triangular_solve tridiagonal_matmul
        tridiagonal_solve
    """),
    "tf.lookup": _names("""
        KeyValueTensorInitializer StaticHashTable StaticVocabularyTable TextFileIndex
        TextFileInitializer experimental
    """),
    "tf.math": _names("""
        accumulate_n acos acosh add add_n angle approx_max_k approx_min_k argmax argmin asin asinh
        atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc bincount ceil
        confusion_matrix conj cos cosh count_nonzero cumprod cumsum cumulative_logsumexp digamma
        divide divide_no_nan equal erf erfc erfcinv erfinv exp expm1 floor floordiv floormod greater
        greater_equal igamma igammac imag in_top_k invert_permutation is_finite is_inf is_nan
        is_non_decreasing is_strictly_increasing l2_normalize lbeta less less_equal lgamma log log1p
        log_sigmoid log_softmax logical_and logical_not logical_or logical_xor maximum minimum mod
        multiply multiply_no_nan ndtri negative nextafter not_equal polygamma polyval pow real
        reciprocal reciprocal_no_nan reduce_all reduce_any reduce_euclidean_norm reduce_logsumexp
        reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance rint
        round rsqrt scalar_mul segment_max segment_mean segment_min segment_prod segment_sum sigmoid
        sign sin sinh sobol_sample softmax softplus softsign special sqrt square squared_difference
        subtract tan tanh top_k truediv unsorted_segment_max unsorted_segment_mean
        unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum
        xdivy xlog1py xlogy zero_fraction zeta
    """),
    "tf.nest": _names("""
        assert_same_structure flatten is_nested map_structure pack_sequence_as
    """),
    "tf.nn": _names("""
        RNNCellDeviceWrapper RNNCellDropoutWrapper RNNCellResidualWrapper all_candidate_sampler
        approx_max_k approx_min_k atrous_conv2d atrous_conv2d_transpose avg_pool avg_pool1d avg_pool2d
        avg_pool3d batch_norm_with_global_normalization batch_normalization bias_add
        collapse_repeated compute_accidental_hits compute_average_loss conv1d conv1d_transpose conv2d
        conv2d_transpose conv3d conv3d_transpose conv_transpose convolution crelu ctc_beam_search_decoder
        ctc_greedy_decoder ctc_loss ctc_unique_labels depth_to_space depthwise_conv2d
        depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input dilation2d dropout elu
        embedding_lookup embedding_lookup_sparse erosion2d experimental
        fixed_unigram_candidate_sampler fractional_avg_pool fractional_max_pool gelu in_top_k
        isotonic_regression l2_loss l2_normalize leaky_relu learned_unigram_candidate_sampler
        local_response_normalization log_poisson_loss log_softmax lrn max_pool max_pool1d max_pool2d
        max_pool3d max_pool_with_argmax moments nce_loss normalize_moments pool relu relu6
        safe_embedding_lookup_sparse sampled_softmax_loss scale_regularization_loss selu
        separable_conv2d sigmoid sigmoid_cross_entropy_with_logits silu softmax
        softmax_cross_entropy_with_logits softplus softsign space_to_batch space_to_depth
        sparse_softmax_cross_entropy_with_logits sufficient_statistics swish tanh top_k
        weighted_cross_entropy_with_logits weighted_moments with_space_to_batch zero_fraction
    """),
    "tf.random": _names("""
        Algorithm Generator all_candidate_sampler categorical create_rng_state experimental
        fixed_unigram_candidate_sampler fold_in gamma get_global_generator
        learned_unigram_candidate_sampler log_uniform_candidate_sampler normal poisson
        set_global_generator set_seed shuffle split stateless_binomial stateless_categorical
        stateless_gamma stateless_normal stateless_parameterized_truncated_normal stateless_poisson
        stateless_truncated_normal stateless_uniform truncated_normal uniform
        uniform_candidate_sampler
    """),
    "tf.sparse": _names("""
        SparseTensor add bincount concat cross cross_hashed eye expand_dims fill_empty_rows from_dense
        map_values mask maximum minimum reduce_max reduce_sum reorder reset_shape reshape retain
        segment_mean segment_sqrt_n segment_sum slice softmax sparse_dense_matmul split to_dense
        to_indicator transpose
    """),
    "tf.strings": _names("""
        as_string bytes_split format join length lower ngrams reduce_join regex_full_match
        regex_replace split strip substr to_hash_bucket to_hash_bucket_fast to_hash_bucket_strong
        to_number unicode_decode unicode_decode_with_offsets unicode_encode unicode_script
        unicode_split unicode_split_with_offsets unicode_transcode unsorted_segment_join upper
    """),
    "tf.test": _names("""
        Benchmark TestCase assert_equal_graph_def benchmark_config compute_gradient
        create_local_cluster disable_with_predicate experimental main with_eager_op_as_function
    """),
    "tf.train": _names("""
        BytesList Checkpoint CheckpointManager CheckpointOptions CheckpointView ClusterDef
        ClusterSpec Coordinator Example ExponentialMovingAverage Feature FeatureList FeatureLists
        Features FloatList Int64List JobDef SequenceExample ServerDef TrackableView
        checkpoints_iterator experimental get_checkpoint_state latest_checkpoint list_variables
        load_checkpoint load_variable
    """),
}
_NAMES["tf.compat.v1.train"] = _NAMES["tf.train"] | _names("""
    AdadeltaOptimizer AdagradDAOptimizer AdagradOptimizer AdamOptimizer ChiefSessionCreator
    FeedFnHook FinalOpsHook FtrlOptimizer GlobalStepWaiterHook GradientDescentOptimizer
    LoggingTensorHook LooperThread MomentumOptimizer MonitoredSession MonitoredTrainingSession
    NanTensorHook NewCheckpointReader Optimizer ProfilerHook ProximalAdagradOptimizer
    ProximalGradientDescentOptimizer QueueRunner RMSPropOptimizer Saver Scaffold SessionManager
    SessionRunHook SingularMonitoredSession StepCounterHook StopAtStepHook Supervisor
    SyncReplicasOptimizer add_queue_runner assert_global_step basic_train_loop batch batch_join
    checkpoint_exists cosine_decay create_global_step exponential_decay get_global_step
    get_or_create_global_step import_meta_graph init_from_checkpoint input_producer
    inverse_time_decay limit_epochs match_filenames_once maybe_batch natural_exp_decay
    noisy_linear_cosine_decay piecewise_constant polynomial_decay range_input_producer
    replica_device_setter sdca_optimizer shuffle_batch slice_input_producer start_queue_runners
    string_input_producer summary_iterator update_checkpoint_state warm_start
""")
# Under compat.v1, beside the names of tf itself.
_NAMES["tf.compat.v1"] = _NAMES["tf"] | _names("""
    AttrValue ConditionalAccumulator ConditionalAccumulatorBase Event FIFOQueue GraphDef
    GraphKeys HistogramProto LogMessage MetaGraphDef NameAttrList NodeDef OptimizerOptions
    PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue ReaderBase RunMetadata
    SparseConditionalAccumulator Summary SummaryMetadata TextLineReader TFRecordReader
    WholeFileReader app add_check_numerics_ops arg_max arg_min assign_add
    batch_scatter_update batch_to_space_nd count_up_to decode_csv
    dimension_value distributions flags get_local_variable
    get_session_handle get_session_tensor graph_util import_graph_def layers
    linalg logging local_variables_initializer make_template manip min_max_variable_partitioner
    model_variables multinomial nn op_scope parse_example quantize quantize_v2
    report_uninitialized_variables resource_loader saved_model scalar_mul scatter_add scatter_div
    scatter_max scatter_min scatter_mul scatter_nd_add scatter_nd_sub scatter_nd_update scatter_sub
    scatter_update serialize_many_sparse setdiff1d sparse_add sparse_concat sparse_placeholder
    sparse_reduce_sum sparse_to_dense spectral squeeze string_split strings
    substr summary tables_initializer to_bfloat16 to_complex64 tpu train tuple
    user_ops wrap_function
    COMPILER_VERSION CXX11_ABI_FLAG CXX_VERSION FixedLengthRecordReader GRAPH_DEF_VERSION
    GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER GraphOptions IdentityReader
    LMDBReader MONOLITHIC_BUILD NoGradient NotDifferentiable QUANTIZED_DTYPES SessionLog
    SparseFeature TensorInfo angle assert_variables_initialized batch_gather betainc cholesky_solve
    clip_by_average_norm colocate_with container convert_to_tensor_or_indexed_slices
    convert_to_tensor_or_sparse_tensor create_partitioned_variables decode_json_example
    delete_session_tensor depth_to_space dequantize deserialize_many_sparse dimension_at_index
    extract_image_patches fake_quant_with_min_max_args fft fft2d fft3d fixed_size_partitioner ifft
    ifft2d ifft3d igamma igammac imag initialize_all_tables initialize_local_variables lbeta
    load_file_system_library moving_average_variables no_regularizer orthogonal_initializer
    parse_single_sequence_example polygamma quantized_concat random_gamma random_poisson
    serialize_sparse space_to_depth sparse_fill_empty_rows sparse_mask sparse_matmul sparse_maximum
    sparse_merge sparse_minimum sparse_reduce_max sparse_reset_shape sparse_reshape sparse_retain
    sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum sparse_slice sparse_softmax
    sparse_split sparse_tensor_dense_matmul sparse_to_indicator sparse_transpose to_complex128
    uniform_unit_scaling_initializer variable_axis_size_partitioner variable_op_scope
    verify_tensor_all_finite zeta
""")


# The alternative, where there is a better hint than the list of names.
_INSTEAD = {
    "decode_gif": "convert GIF files to PNG, each frame for itself (Pillow reads them): decode_image"
                  " takes JPEG, PNG and BMP",
}


def _public_names(module: str) -> list[str]:
    there = sys.modules.get("plimsoll." + module)
    return [name for name in getattr(there, "__all__", dir(there)) if not name.startswith("_")]


def _hint(module: str, name: str) -> str:
    """Where the name is, if TensorFlow 1 had it here; or the name that it is likely to be."""
    if name.startswith("_"):
        return ""
    if module == "tf":
        importlib.import_module("plimsoll.tf.compat.v1")
        if name in _public_names("tf.compat.v1"):
            return f": TensorFlow 1 had it, and it is tf.compat.v1.{name} here"
    near = difflib.get_close_matches(name, _public_names(module), n=1, cutoff=0.75)
    return f": did you mean {module}.{near[0]}?" if near else ""


def error(module: str, name: str) -> Exception:
    """The exception for `module.name`: NotImplementedError if TensorFlow has it, else AttributeError."""
    if name in _NAMES.get(module, ()):
        return NotImplementedError(
            f"{module}.{name}: not implemented in Plimsoll; "
            + _INSTEAD.get(name, f"dir({module}) lists what is")
        )
    hint = _hint(module, name)
    absent = AttributeError(f"module '{module}' has no attribute '{name}'{hint}")
    if hint:  # else a traceback adds a guess of Python's own to it
        absent.name, absent.obj = name, None
    return absent


def _from_ops(module: str, name: str) -> Any:
    """tf.math's `name` if the library has an op of this name that takes one tensor, else None."""
    if module != "tf.math" or name not in _NAMES[module]:
        return None
    from ._ops.elementwise import unary

    try:
        _core.unary(name, 0.5)  # a node: nothing is computed
    except (ValueError, TypeError, errors.OpError):
        return None
    found = unary(name, name, "", "", "plimsoll.tf.math")
    found.__doc__ = f"The op '{name}' of each element."
    return found


def getter(module: str) -> Callable[[str], Any]:
    """A module's __getattr__: a name that a new op of the library provides, or the error.

    >>> import plimsoll.tf as tf
    >>> tf.keras
    Traceback (most recent call last):
        ...
    NotImplementedError: tf.keras: not implemented in Plimsoll; dir(tf) lists what is
    """

    def __getattr__(name: str) -> Any:
        found = _from_ops(module, name)
        if found is None:
            raise error(module, name)
        setattr(sys.modules["plimsoll." + module], name, found)
        return found

    return __getattr__
