# SPDX-License-Identifier: Apache-2.0
"""tf.train.Example and SequenceExample as protobuf knows them, made here of their description:
TensorFlow is not needed for that."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TYPES = descriptor_pb2.FieldDescriptorProto
PACKAGE = "plimsoll.test"


def add_field(message, name, number, kind, *, repeated=False, of=None):
    field = message.field.add(name=name, number=number, type=kind)
    field.label = TYPES.LABEL_REPEATED if repeated else TYPES.LABEL_OPTIONAL
    if of:
        field.type_name = f".{PACKAGE}.{of}"
    return field


def add_list(file, name, kind):
    add_field(file.message_type.add(name=name), "value", 1, kind, repeated=True)


def add_map(file, name, field, value):
    """message NAME { map<string, VALUE> FIELD = 1; }"""
    message = file.message_type.add(name=name)
    entry = "".join(part.capitalize() for part in field.split("_")) + "Entry"
    nested = message.nested_type.add(name=entry)
    nested.options.map_entry = True
    add_field(nested, "key", 1, TYPES.TYPE_STRING)
    add_field(nested, "value", 2, TYPES.TYPE_MESSAGE, of=value)
    add_field(message, field, 1, TYPES.TYPE_MESSAGE, repeated=True, of=f"{name}.{entry}")


def describe():
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package=PACKAGE, syntax="proto3")
    add_list(file, "BytesList", TYPES.TYPE_BYTES)
    add_list(file, "FloatList", TYPES.TYPE_FLOAT)
    add_list(file, "Int64List", TYPES.TYPE_INT64)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("bytes_list", "float_list", "int64_list"), 1):
        of = "".join(part.capitalize() for part in name.split("_"))
        add_field(feature, name, number, TYPES.TYPE_MESSAGE, of=of).oneof_index = 0
    add_map(file, "Features", "feature", "Feature")
    steps = file.message_type.add(name="FeatureList")
    add_field(steps, "feature", 1, TYPES.TYPE_MESSAGE, repeated=True, of="Feature")
    add_map(file, "FeatureLists", "feature_list", "FeatureList")
    add_field(file.message_type.add(name="Example"), "features", 1, TYPES.TYPE_MESSAGE, of="Features")
    sequence = file.message_type.add(name="SequenceExample")
    add_field(sequence, "context", 1, TYPES.TYPE_MESSAGE, of="Features")
    add_field(sequence, "feature_lists", 2, TYPES.TYPE_MESSAGE, of="FeatureLists")
    return file


pool = descriptor_pool.DescriptorPool()
pool.Add(describe())
factory = message_factory.MessageFactory(pool)
Example = factory.GetPrototype(pool.FindMessageTypeByName(f"{PACKAGE}.Example"))
SequenceExample = factory.GetPrototype(pool.FindMessageTypeByName(f"{PACKAGE}.SequenceExample"))
